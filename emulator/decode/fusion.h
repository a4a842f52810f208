// Runs of fma.rn.f32 become one instruction: most of a matrix kernel's time is spent in them.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/operation.h"

namespace kiln::emulator {

/// d = a * b + c on register offsets.
struct MultiplyAdd {
  uint32_t d = 0, a = 0, b = 0, c = 0;
};

/// How many operations from `first` on can run as one; 1 if none.
uint32_t fma_run_length(const std::vector<Operation>& operations, uint32_t first);

/// Appends the run to `lists` in the form of units/fma_run.cpp, grouped by a common factor; returns how many groups.
uint32_t append_groups(const std::vector<MultiplyAdd>& run, std::vector<uint32_t>& lists);

}  // namespace kiln::emulator
