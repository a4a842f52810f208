#include "kiln/runtime/open_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "kiln/base/error.h"

namespace kiln {
namespace {

bool begins_extent(const std::string& line, size_t at) {
  return line[at] == '?' && at > 0 && (line[at - 1] == ':' || line[at - 1] == 'x');
}

// Which extent of its tensor the one at `at` is.
size_t place_in_tensor(const std::string& line, size_t at) {
  const std::string_view before = std::string_view(line).substr(0, at);
  return static_cast<size_t>(std::ranges::count(before.substr(before.rfind(':') + 1), 'x'));  // npos + 1 is 0
}

}  // namespace

OpenLine parse_open_line(const std::string& line) {
  OpenLine result;
  size_t done = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (!begins_extent(line, at)) continue;
    OpenExtent extent;
    extent.before = line.substr(done, at - done);
    size_t end = at + 1;
    // "x" begins the next extent, so it is in no name.
    while (end < line.size() && line[end] != 'x' && std::isalnum(static_cast<unsigned char>(line[end])) != 0) ++end;
    const std::string said = line.substr(at + 1, end - at - 1);
    extent.name = fmt::format("place {}", place_in_tensor(line, at));
    const bool is_number = !said.empty() && std::ranges::all_of(said, [](unsigned char c) { return std::isdigit(c); });
    if (end < line.size() && std::string_view("x:@ \t").find(line[end]) == std::string_view::npos) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' in '{}' is no open extent", line.substr(at, end - at + 1), line),
                  "write ?, ?N for up to N, or ?NAME of letters other than x and digits");
    }
    if (is_number && said.size() > 9) {
      throw Error(ErrorCode::invalid_argument, fmt::format("?{} in '{}' is too large", said, line),
                  "give at most 999999999");
    }
    if (is_number && std::stoll(said) == 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("?0 in '{}' leaves no size", line), "give at least 1");
    if (is_number)
      extent.most = std::stoll(said);
    else if (!said.empty())
      extent.name = said;
    extent.is_named = !is_number && !said.empty();
    done = end;
    at = end - 1;
    result.extents.push_back(std::move(extent));
  }
  result.rest = line.substr(done);
  return result;
}

std::string OpenLine::with(const std::map<std::string, int64_t>& values) const {
  std::string text;
  for (const OpenExtent& extent : extents) {
    const int64_t value = values.at(extent.name);
    text += fmt::format("{}{}", extent.before, value == 0 ? extent.most : std::min(value, extent.most));
  }
  return text + rest;
}

}  // namespace kiln
