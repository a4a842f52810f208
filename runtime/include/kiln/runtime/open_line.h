// OpenLine: a line of request syntax that leaves extents open.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln {

/// A `?` among a tensor's extents: any number, `?N`: up to N, or `?NAME`.
struct OpenExtent {
  std::string before;  ///< Text between the one before, or the line's begin, and this one.
  std::string name;    ///< Extents of one name are equal. Without one it is "place 2", the place in its tensor.
  bool is_named = false;
  int64_t most = 16384;  ///< Limit that the line gives; else what is usual.
};

struct OpenLine {
  std::vector<OpenExtent> extents;
  std::string rest;  ///< Text behind the last.

  /// The line with one number for each name; 0: the most that its extents may be.
  std::string with(const std::map<std::string, int64_t>& values) const;
};

/// Throws Error(invalid_argument) for an extent that is none of these.
OpenLine parse_open_line(const std::string& line);

}  // namespace kiln
