// The open kernels that the sizes of a line with open extents need.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/cache/winners.h"
#include "kiln/generator/catalogue.h"

namespace kiln {

/// Whether the line is a request that leaves extents open, and no part of user code. Throws as parse_open_line().
bool is_open_line(const std::string& line);

/// The lines of a requests file, without comments and counts, as they are written: for Context::prepare_open() and
/// `kiln bundle --open`. Throws Error(parse_error) for a count that is none.
std::vector<std::string> open_lines_in(std::string_view text);

/// An open kernel, and the sizes that take it.
struct OpenLineKernel {
  Request request;  ///< Size that it was chosen for.
  Choice choice;
  double seconds = 0;            ///< Time of that size, by its estimate.
  std::vector<Request> sizes{};  ///< Sizes that were drawn and take it: of several, each takes the first.
  /// Its sources are all among those of the kernels before it: it is there where they are.
  bool is_covered = false;
};

/// A line with open extents, and the open kernels that sizes of it take: those that most sizes take first.
struct OpenLineKernels {
  std::string line{};
  std::vector<OpenLineKernel> kernels{};
  std::string why_none{};  ///< Where no open kernel serves a size.
  size_t drawn = 0;        ///< Number of sizes that were drawn.
  size_t fitting = 0;      ///< Number of these that make a request: fewer where extents depend on each other.

  /// Number of requests that take one of the kernels.
  size_t sizes() const;

  /// A remark for users where few sizes fit; nothing where enough do.
  std::optional<std::string> remark() const;
};

/// Chooses open kernels for lines of request syntax with open extents (open_line.h).
class OpenLineChooser {
 public:
  /// Adds the demands that a Context has on all requests (ContextOptions::batch_invariant). May be empty.
  using Demand = std::function<Request(Request)>;

  /// The catalogue must outlive it.
  OpenLineChooser(const Catalogue& catalogue, const Target& target, const DeviceFigures& figures,
                  const cache::Filter& filter, Demand demand = {})
      : catalogue_(catalogue), target_(target), figures_(figures), filter_(filter), demand_(std::move(demand)) {}

  /// Draws sizes of the line, the same ones each time, and takes few kernels that serve all of them, each within 1.3
  /// times the best estimate. What earlier lines were given serves this one, too. On all threads; some seconds for a
  /// convolution. Throws Error(invalid_argument) for an extent that is no open one, and as Request::parse() for a line
  /// of which no size makes a request.
  OpenLineKernels choose(const std::string& line);

 private:
  const Catalogue& catalogue_;
  Target target_;
  DeviceFigures figures_;
  cache::Filter filter_;
  Demand demand_;
  std::set<std::string> served_;  // sources of what was chosen so far
};

}  // namespace kiln
