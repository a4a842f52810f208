// From operations on virtual registers to the code that runs.
#pragma once

#include "decode/operation.h"
#include "kernel/instruction.h"
#include "kernel/value_flow.h"

namespace kiln::emulator {

struct Assembled {
  Code code;
  ValueFlow values;
  uint32_t registers_estimate = 0;
};

/// Splits into basic blocks, gives registers their places, fuses runs of multiply-adds and resolves branches.
Assembled assemble(OperationList list, const UnitTable& units);

}  // namespace kiln::emulator
