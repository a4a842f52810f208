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

}  // namespace kiln::descriptor
