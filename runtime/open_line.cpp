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

bool begins_no_extent(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) == 0 &&
         std::string_view("? \t\r\n").find(c) == std::string_view::npos;
}

// Where the extent ends that begins at `at`. "x" begins the next one, so it is in no name.
size_t end_of_extent(const std::string& line, size_t at) {
  return std::min(line.find_first_of("x:@ \t\r\n", at), line.size());
}

bool is_number(const std::string& said) {
  return !said.empty() && std::ranges::all_of(said, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Whether it is a name, a number or nothing. "2h" is none of them: twice h is 2*h.
bool is_name(const std::string& said) {
  if (!std::ranges::all_of(said, [](unsigned char c) { return std::isalnum(c) != 0; })) return false;
  return said.empty() || std::isalpha(static_cast<unsigned char>(said[0])) != 0 || is_number(said);
}

int64_t limit(const std::string& said, const std::string& line) {
  if (said.size() > 9) {
    throw Error(ErrorCode::invalid_argument, fmt::format("?{} in '{}' is too large", said, line),
                "give at most 999999999");
  }
  const int64_t most = std::stoll(said);
  if (most == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("?0 in '{}' leaves no size", line), "give at least 1");
  return most;
}

[[noreturn]] void refuse(const std::string& said, const std::string& line, std::string_view fault) {
  throw Error(ErrorCode::invalid_argument, fmt::format("'?{}' in '{}' is no open extent: {}", said, line, fault),
              "write ?, ?N for up to N, ?NAME of letters other than x and digits, or what follows from names, as in "
              "?(h-1)/2+1, without blanks");
}

IntegerExpression expression_of(const std::string& said, const std::string& line) {
  const auto is_meant = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_+-*/%(),").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (const auto other = std::ranges::find_if_not(said, is_meant); other != said.end())
    refuse(said, line, fmt::format("'{}' has no meaning in it", *other));
  try {
    IntegerExpression expression(said);
    if (expression.names().empty()) refuse(said, line, "it names no other");
    return expression;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::parse_error) throw;
    refuse(said, line, error.message());
  }
}

void add(OpenName name, std::vector<OpenName>& names) {
  const auto known = std::ranges::find(names, name.name, &OpenName::name);
  if (known == names.end()) {
    names.push_back(std::move(name));
  } else {
    known->most = std::min(known->most, name.most);
  }
}

int64_t value_of(const IntegerExpression& expression, const std::map<std::string, int64_t>& values) {
  try {
    return expression.evaluate([&](std::string_view name) { return std::optional(values.at(std::string(name))); });
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("the extent has no value: {}", error.message()),
                "a number of 0 or more can be divided, by 1 or more, and nothing may pass 64 bits");
  }
}

}  // namespace

OpenLine parse_open_line(const std::string& line) {
  OpenLine result;
  size_t done = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (!begins_extent(line, at)) continue;
    const size_t end = end_of_extent(line, at);
    const std::string said = line.substr(at + 1, end - at - 1);
    if (end + 1 < line.size() && line[end] == 'x' && begins_no_extent(line[end + 1]))
      refuse(said, line, "x begins the next extent, so no name and no function has one");
    OpenExtent extent{.before = line.substr(done, at - done), .name = {}, .expression = {}};
    if (!is_name(said)) {
      extent.expression = expression_of(said, line);
      for (const auto& [name, column] : extent.expression->names()) add({.name = name, .is_named = true}, result.names);
    } else {
      OpenName name{.name = said, .is_named = !said.empty() && !is_number(said)};
      if (is_number(said)) name.most = limit(said, line);
      if (!name.is_named) name.name = fmt::format("place {}", place_in_tensor(line, at));
      extent.name = name.name;
      add(std::move(name), result.names);
    }
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
    const int64_t value = extent.expression ? value_of(*extent.expression, values) : values.at(extent.name);
    text += fmt::format("{}{}", extent.before, value);
  }
  return text + rest;
}

}  // namespace kiln
