// OpenLine: a line of request syntax that leaves extents open.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kiln/templates/integer_expression.h"

namespace kiln {

/// A number that a line leaves open.
struct OpenName {
  std::string name;       ///< As the line has it; without one "place 2", the place in its tensor.
  bool is_named = false;  ///< Whether the line has a name.
  int64_t most = 16384;   ///< Limit that the line gives, the least of several; else what is usual.
};

/// A `?` among a tensor's extents: any number, `?N`: up to N, `?NAME`, or `?EXPRESSION` of names, `?(h-1)/2+1`.
struct OpenExtent {
  std::string before;  ///< Text between the one before, or the line's begin, and this one.
  std::string name;    ///< Extents of one name are equal. Empty where there is an expression.
  std::optional<IntegerExpression> expression;
};

struct OpenLine {
  std::vector<OpenExtent> extents;
  std::vector<OpenName> names;  ///< Open numbers of all extents and expressions, each once.
  std::string rest;             ///< Text behind the last extent.

  /// The line with a number for each name. Throws Error(invalid_argument) where an expression has no value.
  std::string with(const std::map<std::string, int64_t>& values) const;
};

/// Throws Error(invalid_argument) for an extent that is none of these.
OpenLine parse_open_line(const std::string& line);

}  // namespace kiln
