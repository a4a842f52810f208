// Values of registers before a warp's first instruction.
#pragma once

#include "warp/warp.h"

namespace kiln::emulator {

/// Constants and predicates; once per launch.
void write_constants(Warp& warp);
/// Special registers except %ctaid; once per launch.
void write_special_registers(Warp& warp);
/// %ctaid; once per block.
void write_block_index(Warp& warp);

}  // namespace kiln::emulator
