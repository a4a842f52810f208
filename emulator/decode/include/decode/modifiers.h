// The dotted words behind an opcode, consumed one by one so that none is ignored by accident.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ptx/type.h"

namespace kiln::emulator {

class Modifiers {
 public:
  explicit Modifiers(const std::vector<std::string_view>& words) : words_(words) {}

  bool accept(std::string_view word);
  /// The first of `words` that is present.
  std::optional<std::string_view> accept_one(std::initializer_list<std::string_view> words);
  /// The first word that names a type.
  std::optional<ptx::Type> type();
  std::optional<ptx::Space> space();
  /// Takes the modifiers that consist of `prefix` and one of `words`.
  void accept_behind(std::string_view prefix, std::initializer_list<std::string_view> words);
  bool empty() const { return words_.empty(); }
  std::string_view first() const { return words_.front(); }

 private:
  std::vector<std::string_view> words_;
};

}  // namespace kiln::emulator
