// Pooling and its gradient.
#pragma once

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/tensor.h"
#include "kiln/window.h"

namespace kiln {

struct PoolOptions {
  PoolMode mode = PoolMode::max;
  Pair window{};  ///< {0, 0}: all of x (global pooling).
  Padding pad{};
  Pair stride{1, 1};
  Pair dilation{1, 1};
  DepthWindow depth{};  ///< For operands of three spatial dimensions.
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue{};         ///< User code only: expression(...).
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
};

/// Enqueues y = epilogue(alpha * pool(x) + beta * y) on `stream` and returns without waiting.
///
/// x: N,C,H,W   y: N,C,P,Q; 1-D: N,C,W and N,C,Q; 3-D: N,C,D,H,W and N,C,Z,P,Q. y's extents may be those of the floor
/// formula or of ceil mode; see PoolForward, also for NaN and for windows that lie in the padding. Any strides. y must
/// not overlap x. Errors, first call and threads as for conv_forward().
void pool_forward(Context& context, const Tensor& x, const Tensor& y, const PoolOptions& options,
                  Stream stream = nullptr);

/// Enqueues dx = alpha * (gradient of y = pool(x), given dy) + beta * dx on `stream` and returns without waiting.
///
/// dy: N,C,P,Q   x, dx: N,C,H,W; 1-D and 3-D as above. PoolBackward has the formula: of equal maxima the first gets the
/// gradient, of NaNs the last, windows that overlap add up. Only max reads x: averages may be given dx in its place.
/// Deterministic: each element of dx adds its windows up in one order. Any strides. dx must not overlap dy or x.
/// `options` as for the forward pass, without epilogue. Errors, first call and threads as for conv_forward().
void pool_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx, const PoolOptions& options,
                   Stream stream = nullptr);

}  // namespace kiln
