// The mask of dropout: which elements of a sequence stay, and what they are multiplied by.
#pragma once

#include <cstdint>

#include "kiln/reference/philox.h"

namespace kiln::reference {

struct DropoutMask {
  float p = 0;
  uint64_t seed = 0, offset = 0;

  /// Factor of element number `element` in logical order: 0, or 1 / (1 - p).
  double factor(uint64_t element) const {
    const uint64_t block = element / 4;
    const auto words = philox4x32_10({low(block), high(block), low(offset), high(offset)}, {low(seed), high(seed)});
    if (static_cast<float>(words[element % 4] >> 8) * 0x1p-24F < p) return 0;
    return static_cast<double>(1.0F / (1.0F - p));
  }

 private:
  static uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
  static uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
};

}  // namespace kiln::reference
