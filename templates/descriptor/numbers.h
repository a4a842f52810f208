// Arithmetic that descriptors share.
#pragma once

#include <cstdint>

namespace kiln::descriptor {

/// How many of `divisor` it takes to hold `value`; neither is negative, `divisor` not zero.
constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// Bytes up to the next buffer in a workspace, whose buffers are aligned to 256 bytes.
constexpr int64_t aligned_bytes(int64_t bytes) {
  return ceil_div(bytes, 256) * 256;
}

/// SUM_BITS of lib/exact_sum.cuh for sums of at most `terms`: at most 50, and fewer where all of them would not fit.
constexpr int64_t bits_of_sum(int64_t terms) {
  int64_t bits = 61;
  for (; terms > 1; terms /= 2) --bits;
  return bits < 50 ? bits : 50;
}
constexpr int64_t least_sum_bits = 28;  ///< More than f32 has.

}  // namespace kiln::descriptor
