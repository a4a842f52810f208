// --sweep: a grid of sizes of requests with open extents.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::cli {

/// Numbers for the open extents of requests (kiln/runtime/open_line.h), by their names.
class Sweep {
 public:
  /// `given`: NAME=NUMBERS, numbers and ranges (numbers.h) with commas between. Throws Error(invalid_argument) for
  /// other text and for a name that is given twice.
  explicit Sweep(const std::vector<std::string>& given);

  /// The requests of `text`, a line with open extents as one request for each combination of their numbers. Throws
  /// Error as parse_requests(), naming the numbers; invalid_argument for an extent without a name or a name without
  /// numbers, for numbers that nothing needs, and for more than 4096 sizes.
  std::vector<RequestLine> requests_of(const std::string& text, Expressions& expressions) const;

 private:
  using Values = std::map<std::string, int64_t>;
  std::vector<Values> grid_of(const std::vector<std::string>& names) const;

  std::map<std::string, std::vector<int64_t>> numbers_;
};

}  // namespace kiln::cli
