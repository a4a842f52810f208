#include "kiln/generator/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
#include "text_parsing.h"

namespace kiln {
namespace {

Config config_of(const std::vector<Parameter>& parameters, Point point) {
  std::vector<std::pair<std::string, int64_t>> values;
  values.reserve(point.size());
  for (size_t i = 0; i < point.size(); ++i) values.emplace_back(parameters[i].name, point[i]);
  return Config(std::move(values));
}

std::vector<int64_t> ordered(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// The first name in `config` that is no parameter's.
std::optional<std::string_view> unknown_name(const std::vector<Parameter>& parameters, const Config& config) {
  for (const auto& [name, value] : config.values()) {
    if (std::ranges::find(parameters, name, &Parameter::name) == parameters.end()) return name;
  }
  return std::nullopt;
}

// Nothing where `config` is no point of these parameters.
std::optional<std::vector<int64_t>> point_of(const std::vector<Parameter>& parameters, const Config& config) {
  if (unknown_name(parameters, config)) return std::nullopt;
  std::vector<int64_t> point;
  for (const Parameter& parameter : parameters) {
    const std::optional<int64_t> value = config.find(parameter.name);
    if (!value || std::ranges::find(parameter.values, *value) == parameter.values.end()) return std::nullopt;
    point.push_back(*value);
  }
  return point;
}

// Why `config` is no point of these parameters, in words.
std::string why_no_point(const std::vector<Parameter>& parameters, const Config& config) {
  if (const auto name = unknown_name(parameters, config)) {
    std::vector<std::string_view> names;
    for (const Parameter& parameter : parameters) names.emplace_back(parameter.name);
    const std::string meant = did_you_mean(*name, names);
    if (names.empty()) return fmt::format("no parameter {}: there is none", *name);
    return fmt::format("no parameter {}: {}", *name,
                       meant.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : meant);
  }
  for (const Parameter& parameter : parameters) {
    const std::optional<int64_t> value = config.find(parameter.name);
    if (!value) return fmt::format("parameter {} is missing", parameter.name);
    if (std::ranges::find(parameter.values, *value) == parameter.values.end()) {
      return fmt::format("{}={} is not one of {}", parameter.name, *value, text::join(ordered(parameter.values), ", "));
    }
  }
  throw Error(ErrorCode::internal, "a configuration is no point for no reason");
}

// ": legal with ROWS=4, 8 or 16, or with TILE=64": what one value alone may become so that no rule is broken.
std::string remedies(const std::vector<Parameter>& parameters, Point point, const BrokenRule& broken) {
  std::string text;
  std::vector<int64_t> other(point.begin(), point.end());
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::vector<int64_t> legal;
    for (const int64_t value : ordered(parameters[i].values)) {
      other[i] = value;
      if (!broken(other)) legal.push_back(value);
    }
    other[i] = point[i];
    if (legal.empty()) continue;
    const std::string last = fmt::format("{}", legal.back());
    legal.pop_back();
    text += fmt::format("{}{}={}{}{}", text.empty() ? ": legal with " : ", or with ", parameters[i].name,
                        fmt::join(legal, ", "), legal.empty() ? "" : " or ", last);
  }
  return text.empty() ? ": no other value of one parameter makes it legal" : text;
}

}  // namespace

Config::Config(std::vector<std::pair<std::string, int64_t>> values) : values_(std::move(values)) {
  std::sort(values_.begin(), values_.end());
}

Config Config::parse(std::string_view whole) {
  if (whole == "-") return Config();
  std::vector<std::pair<std::string, int64_t>> values;
  for (std::string_view part : text::split(whole, ',')) {
    const size_t equals = part.find('=');
    const std::optional<int64_t> value =
        equals == std::string_view::npos ? std::nullopt : text::parse_int(part.substr(equals + 1));
    const std::string name(part.substr(0, equals));
    if (!value || name.empty()) {
      throw Error(ErrorCode::parse_error, fmt::format("'{}' in configuration '{}' is not NAME=integer", part, whole),
                  "write for example PAD=1,ROWS=8,TILE=32, or - for none");
    }
    const bool repeated = std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    if (repeated) throw Error(ErrorCode::parse_error, fmt::format("'{}' stands twice in '{}'", name, whole));
    values.emplace_back(name, *value);
  }
  return Config(std::move(values));
}

std::string Config::print() const {
  if (values_.empty()) return "-";
  std::vector<std::string> parts;
  for (const auto& [name, value] : values_) parts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::optional<int64_t> Config::find(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void Space::add(Parameter parameter) {
  parameters_.push_back(std::move(parameter));
}
void Space::add(Rule rule) {
  rules_.push_back(std::move(rule));
}

int64_t Space::size() const {
  int64_t points = 1;
  for (const Parameter& parameter : parameters_) points *= static_cast<int64_t>(parameter.values.size());
  return points;
}

std::optional<std::string> Space::refusal(const Config& config, const BrokenRule& broken) const {
  const std::optional<std::vector<int64_t>> point = point_of(parameters_, config);
  if (!point) return why_no_point(parameters_, config);
  const std::optional<size_t> rule = broken(*point);
  if (!rule) return std::nullopt;
  return fmt::format("{} ({}){}", rules_.at(*rule).name, config.print(), remedies(parameters_, *point, broken));
}

bool Space::is_legal(const Config& config, const BrokenRule& broken) const {
  const std::optional<std::vector<int64_t>> point = point_of(parameters_, config);
  return point && !broken(*point);
}

void Space::for_each_legal(const BrokenRule& broken, const std::function<bool(const Config&)>& visit) const {
  std::vector<size_t> digits(parameters_.size(), 0);
  std::vector<int64_t> point;
  for (const Parameter& parameter : parameters_) point.push_back(parameter.values.front());
  while (true) {
    if (!broken(point) && !visit(config_of(parameters_, point))) return;

    size_t position = digits.size();
    for (; position > 0; --position) {
      const size_t i = position - 1;
      const bool carry = ++digits[i] == parameters_[i].values.size();
      if (carry) digits[i] = 0;
      point[i] = parameters_[i].values[digits[i]];
      if (!carry) break;
    }
    if (position == 0) return;
  }
}

}  // namespace kiln
