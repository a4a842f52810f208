// Pooling, its gradient, max unpooling, and its gradient.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
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
/// formula or of ceil mode; see PoolForward, also for NaN and for windows that lie in the padding. x and y of mode max
/// may hold integers. Any strides. y must not overlap x. Bitwise reproducible. An empty batch is a no-op, here and
/// below. Errors, first call and threads as for conv_forward().
void pool_forward(Context& context, const Tensor& x, const Tensor& y, const PoolOptions& options,
                  Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * (gradient of y = pool(x), given dy) + beta * dx) on `stream` and returns without
/// waiting.
///
/// dy: N,C,P,Q   x, dx: N,C,H,W; 1-D and 3-D as above. PoolBackward has the formula: of equal maxima the first gets the
/// gradient, of NaNs the last, windows that overlap add up. Only max reads x: averages may be given dx in its place.
/// Deterministic: each element of dx adds its windows up in one order. Any strides. dx must not overlap dy or x.
/// `options` as for the forward pass, but the epilogue is of dx, and the prologue of user code applies to dy. Errors,
/// first call and threads as for conv_forward().
void pool_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx, const PoolOptions& options,
                   Stream stream = nullptr);

/// As pool_forward() of mode max, and writes where each maximum stands. indices: as y, i32: the position in its channel
/// of x, counted in logical order (h*W + w); of equal maxima the first in the order of the window, of NaNs the last; -1
/// for a window without an element inside x. With a prologue of user code, maxima are those of its results. y and
/// indices must not overlap x or one another. Everything else as pool_forward().
void pool_forward(Context& context, const Tensor& x, const Tensor& y, const Tensor& indices, const PoolOptions& options,
                  Stream stream = nullptr);

/// As pool_backward() of mode max, from the indices that pool_forward() wrote instead of from x. An index that is no
/// position of its window passes nothing on. dx must not overlap dy or the indices. Deterministic too.
void pool_backward_from_indices(Context& context, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                                const PoolOptions& options, Stream stream = nullptr);

/// Enqueues y = alpha * (x at the positions that `indices` name, 0 elsewhere) + beta * y on `stream`: max unpooling.
/// Where windows overlap and several name a position, y is their sum, so that it does not depend on the order.
///
/// x, indices: N,C,P,Q   y: N,C,H,W; the mirror image of pool_forward(), with its `options`. It is
/// pool_backward_from_indices() with dy = x and dx = y; unpool_backward() is its gradient.
/// y must not overlap x or the indices. Bitwise reproducible.
void unpool_forward(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y,
                    const PoolOptions& options, Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * (dy at the positions that `indices` name) + beta * dx) on `stream` and returns
/// without waiting: the gradient of unpool_forward() by its x, and the second derivative of maximum pooling.
///
/// dy: N,C,H,W   indices, dx: N,C,P,Q; `options` those of unpool_forward(), but the epilogue is of dx, and the prologue
/// of user code applies to dy. Windows that name one position each get its element. An index that is no position of its
/// window gives 0, as unpool_forward() passes nothing on there. dx must not overlap dy or the indices. Bitwise
/// reproducible.
void unpool_backward(Context& context, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                     const PoolOptions& options, Stream stream = nullptr);

}  // namespace kiln
