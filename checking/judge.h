// The host side of the check: what the output should be, and whether a copy of it is that. Knows no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/checking/check.h"
#include "kiln/generator/request.h"
#include "kiln/reference/reference.h"

namespace kiln::checking {

/// The largest error seen, relative to what is allowed, and the first element beyond it.
struct Finding {
  double max_error = 0;
  double bound = 0;
  int64_t checked = 0;
  std::string wrong;  ///< Empty if all elements are right.
};

/// `largest error 1.2e-07 of 3.4e-06 allowed`, with three digits, or as many as tell the two apart.
std::string text_of_errors(double max_error, double bound);

/// Judges one output of a request for one set of inputs.
class Judge {
 public:
  /// Evaluates the reference: at every coordinate if `full`, else at `samples` ones. `slack`: how much further off each
  /// element may be than arithmetic puts it, in logical order; infinite where anything is right; empty for none.
  Judge(const Request& request, const std::string& output, const reference::Bindings& bindings, bool full,
        int64_t samples, uint64_t seed, std::vector<float> slack = {});

  /// Other values that are right, too, for elements by their numbers in logical order: positions of extremes.
  void allow(std::map<size_t, std::vector<double>> values) { allowed_ = std::move(values); }

  /// Compares the first `n` of dimension 0 of the output with the reference at the coordinates it was evaluated at.
  Finding with_reference(std::span<const std::byte> output, int64_t n) const;
  /// Compares all of the first `n` of dimension 0 of the output with the trusted variant's, both being at most as far
  /// from the truth as the reference allows at any sampled coordinate.
  Finding with_trusted(std::span<const std::byte> output, std::span<const std::byte> trusted, int64_t n) const;
  /// How far two right variants may be apart at each element before they round to storage, in logical order; inf where
  /// the definition leaves the element open.
  std::vector<float> margins() const;

 private:
  struct Point {
    reference::Coordinate coordinate;
    reference::Expected expected;
  };

  bool is_allowed(std::span<const int64_t> coordinate, double got) const;
  // The same of elements begin to end of `compared`, the part of the output, in logical order.
  Finding with_trusted(std::span<const std::byte> output, std::span<const std::byte> trusted,
                       const TensorSpec& compared, size_t begin, size_t end) const;
  void look_at(const Point& point, std::span<const std::byte> output, Finding& finding) const;

  Request request_;
  std::string name_;
  TensorSpec output_;
  std::vector<Point> points_;
  std::vector<float> slack_;
  std::map<size_t, std::vector<double>> allowed_;
  double arithmetic_error_ = 0;  // the most at any point
};

/// The first byte that differs, of as many as both have; on all of the machine's threads.
std::optional<size_t> first_difference(std::span<const std::byte> a, std::span<const std::byte> b);

/// Where memory that is no element of the first `n` of dimension 0 differs from what it was before: "at element offset
/// 17"; nothing if it does not.
std::optional<std::string> stray_write(const TensorSpec& spec, int64_t n, std::span<const std::byte> before,
                                       std::span<const std::byte> after);

}  // namespace kiln::checking
