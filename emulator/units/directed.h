// Arithmetic under another rounding mode than to nearest.
#pragma once

#include <xmmintrin.h>

#include "lanes.h"
#include "units/unit_table.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

/// Runs `handler` under the rounding mode in the immediate's low three bits. The handler reads its operands from memory
/// and writes its result there, so the two barriers keep the arithmetic between the mode switches.
template <Handler handler>
const Instruction* directed(Warp& warp, const Instruction* i) {
  const unsigned before = _mm_getcsr();
  unsigned mode = _MM_ROUND_NEAREST;
  switch (static_cast<Rounding>(i->immediate & 7)) {
    case Rounding::zero:
      mode = _MM_ROUND_TOWARD_ZERO;
      break;
    case Rounding::down:
      mode = _MM_ROUND_DOWN;
      break;
    case Rounding::up:
      mode = _MM_ROUND_UP;
      break;
    default:
      break;
  }
  _mm_setcsr((before & ~unsigned{_MM_ROUND_MASK}) | mode);
  asm volatile("" ::: "memory");
  const Instruction* const next = handler(warp, i);
  asm volatile("" ::: "memory");
  _mm_setcsr(before);
  return next;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
