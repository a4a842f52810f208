// Dropout, forward and backward.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/tensor.h"

namespace kiln {

struct DropoutOptions {
  float p = 0.5f;       ///< The part of the elements that become 0; 0 to 1.
  uint64_t seed = 0;    ///< The key of the random sequence.
  uint64_t offset = 0;  ///< The place in that sequence: give each call of a training its own.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * dropout(x) + beta * y) on `stream` and returns without waiting: x / (1 - p) where an
/// element is kept, else 0, whatever x is. User code may have a prologue, which every element of x passes through
/// first.
///
/// x, y: equal extents of 1 to 5 dimensions, any strides; dtypes may differ. Whether an element is kept depends on p,
/// seed, offset and the number of the element in logical order (Dropout says how, by Philox 4x32-10). So the mask is
/// the same on every device, in every layout and by every kernel. In place: y may be x itself, with its dtype and
/// strides; otherwise they must share no element. p, seed and offset may change from call to call without another plan.
/// Bitwise reproducible. An empty tensor is a no-op. Errors, first call and threads as for conv_forward(), and
/// Error(invalid_argument) for a p outside 0 to 1.
void dropout_forward(Context& context, const Tensor& x, const Tensor& y, const DropoutOptions& options = {},
                     Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * dropout(dy) + beta * dx): the gradient with respect to x of dropout_forward() without
/// user code. The gradient is the same function of dy: equal p, seed and offset make the same mask again. Error
/// messages call dy x, and dx y. Otherwise as dropout_forward().
void dropout_backward(Context& context, const Tensor& dy, const Tensor& dx, const DropoutOptions& options = {},
                      Stream stream = nullptr);

}  // namespace kiln
