// How far Winograd's minimal filtering may take an element of a 3x3 convolution off its value: docs/numerics.md,
// "Winograd", derives the rule.
#pragma once

#include <cstdint>
#include <functional>

#include "evaluator.h"

namespace kiln::reference {

/// A convolution of unit stride with a filter of 3x3, for the outputs of one plane of one channel.
struct PlaneConvolution {
  int64_t channels = 0;  ///< that are summed
  /// The input that output (p, q) meets under tap (r, s) is input(c, p + r, q + s); zero where it has no element.
  std::function<double(int64_t c, int64_t row, int64_t column)> input;
  std::function<double(int64_t c, int64_t r, int64_t s)> filter;
};

/// Makes of what the definition says of output (p, q) what F(2x2,3x3) and F(4x4,3x3) may make of it too: the bound of
/// the loosest of the three, as wherever a request permits more than f32 sums.
void permit_winograd(Expected& sum, const PlaneConvolution& conv, int64_t p, int64_t q);

}  // namespace kiln::reference
