#include "environment.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"

namespace kiln::capi {
namespace {

constexpr const char* hint = "settings are \"NAME=value\", with the names of docs/environment.md";

std::map<std::string, std::string> parsed(std::span<const char* const> settings) {
  std::map<std::string, std::string> values;
  for (const char* setting : settings) {
    const std::string text = setting == nullptr ? "" : setting;
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(ErrorCode::invalid_argument, fmt::format("the setting '{}' has no name or no value", text), hint);
    }
    values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return values;
}

}  // namespace

Environment environment_of(std::span<const char* const> settings) {
  const std::map<std::string, std::string> values = parsed(settings);
  std::set<std::string> known;
  Environment environment = Environment::read([&](const char* name) -> const char* {
    known.insert(name);
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
  for (const auto& [name, value] : values) {
    if (known.contains(name)) continue;
    const std::vector<std::string_view> names(known.begin(), known.end());
    throw Error(ErrorCode::invalid_argument, fmt::format("unknown setting {}", name), did_you_mean(name, names, hint));
  }
  return environment;
}

}  // namespace kiln::capi
