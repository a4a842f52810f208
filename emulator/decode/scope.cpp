#include "decode/scope.h"

#include <charconv>

namespace kiln::emulator {

std::optional<Entity> Scope::find(std::string_view name) const {
  for (const Range& range : ranges_) {
    if (!name.starts_with(range.prefix) || name.size() == range.prefix.size()) continue;
    const std::string_view digits = name.substr(range.prefix.size());
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number < range.count) {
      return RegisterName{range.first + number};
    }
  }
  const auto found = names_.find(name);
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

}  // namespace kiln::emulator
