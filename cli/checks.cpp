#include "checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Option.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "command_tree.h"
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

CLI::Validator one_of(std::vector<std::string> words) {
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

std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos) return words;
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

CLI::Validator whole_number(int64_t least, int64_t most) {
  const auto refusal = [least, most](const std::string& text) -> std::string {
    if (const auto value = number_in<int64_t>(text); value && *value >= least && *value <= most) return {};
    if (most == std::numeric_limits<int64_t>::max())
      return fmt::format("'{}' is not a whole number from {} up", text, least);
    return fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
  };
  return {refusal, ""};
}

void refuse_empty_values(CLI::App& command) {
  const auto refusal = [](const std::string& text) -> std::string {
    return text.empty() ? "an empty value: give one, or leave the option out" : "";
  };
  for (CLI::Option* option : command.get_options([](const CLI::Option* each) { return takes_value(*each); })) {
    option->check(CLI::Validator(refusal, ""));
  }
  for (CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) refuse_empty_values(*below);
}

CLI::Validator number_above_zero() {
  const auto refusal = [](const std::string& text) -> std::string {
    if (const auto value = number_in<double>(text); value && std::isfinite(*value) && *value > 0) return {};
    return fmt::format("'{}' is not a number above 0", text);
  };
  return {refusal, ""};
}

}  // namespace kiln::cli
