#include "checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "command_line.h"
#include "kiln/base/nearest.h"

namespace kiln::cli {
namespace {

// The whole of `text` as a number; nothing if it is none that fits.
template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

Check one_of(std::vector<std::string> words) {
  const std::string listed = fmt::format("{{{}}}", fmt::join(words, ","));
  const auto refusal = [words = std::move(words)](const std::string& value) -> std::string {
    for (const std::string& word : words) {
      if (word == value) return {};
    }
    constexpr size_t most_listed = 8;  // beside what was meant
    const std::vector<std::string_view> known(words.begin(), words.end());
    const std::string meant = did_you_mean(value, known);
    if (meant.empty()) return fmt::format("'{}' is not one of {}", value, fmt::join(words, ", "));
    if (words.size() > most_listed) return fmt::format("there is no '{}'; {}", value, meant);
    return fmt::format("'{}' is not one of {}; {}", value, fmt::join(words, ", "), meant);
  };
  return {refusal, listed};
}

std::vector<std::string> words_of(Option option) {
  const std::string type = option.type_name();
  const size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos) return words;
  for (size_t begin = open + 1, end = open; end < close; begin = end + 1) {
    end = std::min(type.find(',', begin), close);
    words.push_back(type.substr(begin, end - begin));
  }
  return words;
}

Check whole_number(int64_t least, int64_t most) {
  const auto refusal = [least, most](const std::string& text) -> std::string {
    if (const auto value = number_in<int64_t>(text); value && *value >= least && *value <= most) return {};
    if (most == std::numeric_limits<int64_t>::max())
      return fmt::format("'{}' is not a whole number from {} up", text, least);
    return fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
  };
  return {refusal};
}

void refuse_empty_values(Command command) {
  const auto refusal = [](const std::string& text) -> std::string {
    return text.empty() ? "an empty value: give one, or leave the option out" : "";
  };
  for (const Option option : command.options()) {
    if (option.takes_value()) option.check({refusal});
  }
  for (const Command below : command.commands()) refuse_empty_values(below);
}

Check number(double least, double most) {
  const auto refusal = [least, most](const std::string& text) -> std::string {
    // Nothing compares with nan, which is refused so.
    if (const auto value = number_in<double>(text); value && *value >= least && *value <= most) return {};
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
  return {refusal};
}

Check number_above_zero() {
  const auto refusal = [](const std::string& text) -> std::string {
    if (const auto value = number_in<double>(text); value && std::isfinite(*value) && *value > 0) return {};
    return fmt::format("'{}' is not a number above 0", text);
  };
  return {refusal};
}

}  // namespace kiln::cli
