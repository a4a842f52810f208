#include "decode/modifiers.h"

#include <algorithm>

namespace kiln::emulator {

bool Modifiers::accept(std::string_view word) {
  const auto at = std::find(words_.begin(), words_.end(), word);
  if (at == words_.end()) return false;
  words_.erase(at);
  return true;
}

std::optional<std::string_view> Modifiers::accept_one(std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (accept(word)) return word;
  }
  return std::nullopt;
}

std::optional<ptx::Type> Modifiers::type() {
  for (auto at = words_.begin(); at != words_.end(); ++at) {
    if (const auto type = ptx::type_from(*at)) {
      words_.erase(at);
      return type;
    }
  }
  return std::nullopt;
}

std::optional<ptx::Space> Modifiers::space() {
  for (auto at = words_.begin(); at != words_.end(); ++at) {
    if (const auto space = ptx::space_from(*at)) {
      words_.erase(at);
      return space;
    }
  }
  return std::nullopt;
}

void Modifiers::accept_behind(std::string_view prefix, std::initializer_list<std::string_view> words) {
  std::erase_if(words_, [&](std::string_view word) {
    return word.starts_with(prefix) && std::find(words.begin(), words.end(), word.substr(prefix.size())) != words.end();
  });
}

}  // namespace kiln::emulator
