// Reductions: one value from all elements along some dimensions.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/tensor.h"

namespace kiln {

struct ReduceOptions {
  float alpha = 1;
  float beta = 0;              ///< Not 0: the old content of y is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; the batch is not reduced then.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * reduce(x) + beta * y) on `stream` and returns without waiting. `mode` combines the
/// elements of x along every dimension in which y has an extent of 1.
///
/// x: 1 to 5 dimensions. y: in each dimension the extent of x, or 1. Any dtypes and strides; sums are in f32, and
/// results are rounded to the nearest (integers saturate, and NaN becomes 0 in them). ReduceMode has the results for
/// NaN and for no elements. User code may have a prologue, which every element of x passes through first. Bitwise
/// reproducible: few long rows are split over blocks, whose parts are merged in a fixed order. y must not overlap x.
///
/// Throws Error(invalid_argument), nothing enqueued, for extents that do not fit, a y without an extent of 1, memory
/// that overlaps, and an epilogue of stages. First call and threads as for conv_forward().
void reduce(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const ReduceOptions& options = {},
            Stream stream = nullptr);

/// The same for min, max and amax, and also writes the position of each extreme. indices: i32, extents of y: the
/// position among the reduced dimensions, counted in logical order, the last dimension fastest. The first of equal
/// elements counts, and the first of several NaNs; -1 stands for a row without elements. y and indices must not overlap
/// x or one another.
void reduce(Context& context, ReduceMode mode, const Tensor& x, const Tensor& y, const Tensor& indices,
            const ReduceOptions& options = {}, Stream stream = nullptr);

struct ReduceBackwardOptions {
  std::optional<Tensor> x{};        ///< For mul, mul_no_zeros, norm1, norm2 and amax: what was reduced.
  std::optional<Tensor> y{};        ///< For mul, mul_no_zeros and norm2: the result.
  std::optional<Tensor> indices{};  ///< For min, max and amax: the positions that reduce() wrote.
  float alpha = 1;
  float beta = 0;              ///< Not 0: the old content of dx is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; the batch is not reduced then.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues dx = epilogue(alpha * g + beta * dx) on `stream` and returns without waiting: g is the gradient of reduce()
/// by x, of which dy is that of y. ReduceBackward (kiln/generator/operations/reduce_backward.h) has the formulas.
///
/// dx: 1 to 5 dimensions. dy, y, indices: in each dimension the extent of dx, or 1. x: extents of dx. f32, f16 and
/// bf16, of each operand for itself, indices i32; any strides. With min, max and amax the gradient is that of the
/// element that was picked, the first of equal ones. Bitwise reproducible. dx must not overlap other operands.
///
/// Throws Error(invalid_argument), nothing enqueued, as reduce() does, and for operands that the mode needs or does not
/// read. First call and threads as for conv_forward().
void reduce_backward(Context& context, ReduceMode mode, const Tensor& dy, const Tensor& dx,
                     const ReduceBackwardOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
