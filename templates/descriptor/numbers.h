// Arithmetic that descriptors share.
#pragma once

#include <cstdint>

namespace kiln::descriptor {

/// How many of `divisor` it takes to hold `value`; neither is negative, `divisor` not zero.
constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace kiln::descriptor
