// Multiply-adds of f32 are most of a matrix kernel: runs of them become one instruction each, and outer products within
// a run become tiles whose sums stay in vector registers while the whole run's factors go by.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/operation.h"

namespace kiln::emulator {

/// Moves multiply-adds down past operations that do not depend on them, up to a limit, so that they come in long runs:
/// an unrolled loop then loads several steps' factors and multiplies them all at once. Keeps the order among
/// themselves.
void gather_multiply_adds(std::vector<Operation>& operations);

/// How many operations from `first` on can run as one; 1 if none.
uint32_t fma_run_length(const std::vector<Operation>& operations, uint32_t first);

/// d = a * b + c on register offsets.
struct MultiplyAdd {
  uint32_t d = 0, a = 0, b = 0, c = 0;
};

struct FusedRun {
  uint32_t tiles = 0;   ///< of 4 x 4 sums
  uint32_t groups = 0;  ///< of operations that share a factor
};

/// Appends the run to `lists` in the form that units/fma_run.cpp executes: tiles, then groups.
FusedRun append_run(const std::vector<MultiplyAdd>& run, std::vector<uint32_t>& lists);

}  // namespace kiln::emulator
