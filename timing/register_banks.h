// Two banks of a scheduler's registers, of even and of odd ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace kiln::timing {

/// A bank gives a register of all lanes in a cycle. Three cycles are there to read an instruction's operands in; one
/// that needs more of them, or finds its bank still giving those of the ones before, holds the scheduler as long.
class RegisterBanks {
 public:
  /// Reads so many registers of each bank for an instruction that is issued at `now`. Returns the cycles that it holds
  /// the scheduler.
  uint64_t read(const std::array<uint8_t, 2>& registers, uint64_t now) {
    uint64_t held = 0;
    for (uint32_t bank = 0; bank < registers.size(); ++bank) {
      if (registers[bank] == 0) continue;
      free_[bank] = std::max(free_[bank], now) + registers[bank];
      held = std::max(held, free_[bank] - std::min(free_[bank], now + at_hand));
    }
    return held;
  }

 private:
  static constexpr uint64_t at_hand = 3;
  std::array<uint64_t, 2> free_{};
};

}  // namespace kiln::timing
