// Places for virtual registers in a warp's register file. Kept small, so that a warp's registers stay in the
// first-level cache: a register of 32 bits takes 128 bytes there.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/operation.h"
#include "liveness.h"

namespace kiln::emulator {

struct Allocation {
  std::vector<uint32_t> offset;  ///< by register, in bytes
  uint32_t bytes = 0;            ///< of the register file
  uint32_t peak_words = 0;       ///< 32-bit registers live at once, at most
};

/// Linear scan over the registers' intervals, one pool per width. Predicate 0, which is always true, has offset 0.
/// Registers of different width never share bytes, and a destination takes the place of an operand that ends with it.
Allocation allocate(const OperationList& list, const Liveness& liveness);

}  // namespace kiln::emulator
