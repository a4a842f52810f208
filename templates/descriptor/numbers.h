// Arithmetic that descriptors share.
#pragma once

#include <cstdint>

namespace kiln::descriptor {

/// How many of `divisor` it takes to hold `value`; neither is negative, `divisor` not zero.
constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// A launch has no more blocks along x, and along y and z, than these (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
inline constexpr int64_t most_blocks_in_x = (int64_t{1} << 31) - 1, most_blocks_in_y = 65535;

}  // namespace kiln::descriptor
