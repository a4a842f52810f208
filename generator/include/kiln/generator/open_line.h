// OpenLine: a line of request syntax that leaves extents open.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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

/// Whether the line is a request that leaves extents open, and no part of user code. Throws as parse_open_line().
bool is_open_line(const std::string& line);

/// The lines of a requests file, without comments and counts, as they are written: for Context::prepare_open() and
/// `kiln bundle --open`. Throws Error(parse_error) for a count that is none.
std::vector<std::string> open_lines_in(std::string_view text);

}  // namespace kiln
