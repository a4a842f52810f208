#include "sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/runtime/open_line.h"
#include "kiln/runtime/open_line_kernels.h"
#include "numbers.h"

namespace kiln::cli {
namespace {

[[noreturn]] void refuse_sweep(const std::string& given, const std::string& fault) {
  throw Error(
      ErrorCode::invalid_argument, fmt::format("--sweep {}: {}", given, fault),
      "give NAME=1,8,32 for an extent ?NAME of the request; 14..56/14 is 14, 28, 42, 56 and 14..56*2 is 14, 28, "
      "56");
}

// The names of a line's open extents, each once.
std::vector<std::string> names_of(const std::string& line, const OpenLine& open) {
  std::vector<std::string> names;
  for (const OpenName& name : open.names) {
    if (!name.is_named) {
      throw Error(
          ErrorCode::invalid_argument, fmt::format("an open extent of '{}' has no name", line),
          "name it, as in x=f32:?nx?c, and give --sweep n=1,8 --sweep c=64; `kiln explain`, `verify`, `emit` and "
          "`bundle --open` take all sizes, without --sweep");
    }
    names.push_back(name.name);
  }
  return names;
}

std::string text_of(const std::map<std::string, int64_t>& values) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values) parts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Sweep::Sweep(const std::vector<std::string>& given) {
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) refuse_sweep(text, "it names no extent");
    std::vector<int64_t>& numbers = numbers_[text.substr(0, equals)];
    if (!numbers.empty()) refuse_sweep(text, "the extent is given twice");
    std::string_view list = std::string_view(text).substr(equals + 1);
    do {
      const std::vector<int64_t> more =
          numbers_of(take_part(list, ","), [&](const std::string& fault) { refuse_sweep(text, fault); });
      numbers.insert(numbers.end(), more.begin(), more.end());
    } while (!list.empty());
  }
}

std::vector<Sweep::Values> Sweep::grid_of(const std::vector<std::string>& names) const {
  std::vector<Values> grid(1);
  for (const std::string& name : names) {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("nothing says what ?{} is", name),
                  fmt::format("give --sweep {}=1,8,32", name));
    }
    if (grid.size() * found->second.size() > most_sizes) {
      throw Error(ErrorCode::invalid_argument, fmt::format("--sweep gives more than {} sizes", most_sizes),
                  "give fewer numbers");
    }
    std::vector<Values> longer;
    for (const Values& values : grid) {
      for (const int64_t number : found->second) {
        longer.push_back(values);
        longer.back()[name] = number;
      }
    }
    grid = std::move(longer);
  }
  return grid;
}

std::vector<RequestLine> Sweep::requests_of(const std::string& text, Expressions& expressions) const {
  std::vector<RequestLine> requests;
  std::set<std::string> used;
  std::string before, plain;  // line breaks of the lines before, so that errors name the right one
  const auto parse = [&](const std::string& lines) {
    for (RequestLine& request : parse_requests(lines, expressions)) requests.push_back(std::move(request));
  };
  std::istringstream rest(text);
  for (std::string line; std::getline(rest, line); before += '\n') {
    const std::string request = line.substr(0, line.find('#'));
    if (!is_open_line(request)) {
      plain += line + "\n";
      continue;
    }
    parse(std::exchange(plain, before + "\n"));
    const OpenLine open = parse_open_line(request);
    const std::vector<std::string> names = names_of(request, open);
    used.insert(names.begin(), names.end());
    for (const Values& values : grid_of(names)) {
      try {
        parse(before + open.with(values));
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("with {}: {}", text_of(values), error.message()), error.hint());
      }
    }
  }
  parse(plain);
  for (const auto& [name, numbers] : numbers_) {
    if (!used.contains(name)) refuse_sweep(name, fmt::format("no request has an extent ?{}", name));
  }
  return requests;
}

}  // namespace kiln::cli
