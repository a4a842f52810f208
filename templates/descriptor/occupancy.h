// How much of an SM thread blocks take: what the models of time share.
#pragma once

#include "kiln/generator/arch.h"

namespace kiln::descriptor {

/// Resources that a thread block holds while it runs.
struct BlockResources {
  double threads = 1;
  double registers = 32;    ///< Per thread, of 32 bits.
  double shared_bytes = 0;  ///< Static and dynamic.
};

/// Thread blocks that an SM holds at the same time, but at least 1: warps are whole, registers are allocated by eights
/// a thread, and the system keeps 1 KiB of shared memory for each block.
double resident_blocks(const BlockResources& block, const Arch& arch);

/// Registers that a thread may have where an SM holds `warps`: each of its four parts has a quarter of the registers
/// and, as nearly as it goes, of the warps; allocated by eights.
int registers_with(int warps, const Arch& arch);

}  // namespace kiln::descriptor
