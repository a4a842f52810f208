// Softmax and log-softmax, forward and backward.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/tensor.h"

namespace kiln {

struct SoftmaxOptions {
  int64_t axis = 1;  ///< Negative counts from the end.
  SoftmaxMode mode = SoftmaxMode::accurate;
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue{};         ///< User code only: expression().
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
};

/// Enqueues y = epilogue(alpha * softmax(x) + beta * y) along `axis` on `stream` and returns without waiting; with mode
/// log it is log-softmax.
///
/// x, y: equal extents of 1 to 5 dimensions, any strides. In place: y may be x itself, with its dtype and strides;
/// otherwise they must share no element. SoftmaxForward has the results for rows with NaN or infinities. User code may
/// have a prologue, which every element of x passes through first: a temperature, a mask. Bitwise reproducible. An
/// empty tensor is a no-op. Errors, first call and threads as for conv_forward().
void softmax_forward(Context& context, const Tensor& x, const Tensor& y, const SoftmaxOptions& options = {},
                     Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * (gradient with respect to x of y = softmax(x), or of log-softmax, given dy) + beta *
/// dx) on `stream` and returns without waiting. With sums over `axis`:
///
///   accurate: y (dy - sum(y dy))        log: dy - exp(y) sum(dy)
///
/// y: the result of softmax_forward() with the same axis and mode. y, dy, dx: equal extents of 1 to 5 dimensions, any
/// strides; dtypes may differ; sums are in f32. In place: dx may be dy or y itself, with its dtype and strides;
/// otherwise they must share no element. A prologue of user code applies to dy. Bitwise reproducible. Errors, first
/// call and threads as for conv_forward().
void softmax_backward(Context& context, const Tensor& y, const Tensor& dy, const Tensor& dx,
                      const SoftmaxOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
