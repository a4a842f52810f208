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
/// x: N,C,H,W   y: N,C,P,Q; 1-D: N,C,W and N,C,Q; 3-D: N,C,D,H,W and N,C,Z,P,Q. y has the extents of the floor formula
/// or of ceil mode; PoolForward has both, and the results for NaN and for windows that lie in the padding. x and y of
/// mode max may hold integers. Any strides. y must not overlap x. Bitwise reproducible. An empty batch is a no-op, here
/// and below. Errors, first call and threads as for conv_forward().
void pool_forward(Context& context, const Tensor& x, const Tensor& y, const PoolOptions& options,
                  Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * (gradient of y = pool(x), given dy) + beta * dx) on `stream` and returns without
/// waiting.
///
/// dy: N,C,P,Q   x, dx: N,C,H,W; 1-D and 3-D as above. PoolBackward has the formula. The first of equal maxima gets the
/// gradient, and the last of several NaNs; windows that overlap add up. Only mode max reads x: for averages dx may be
/// given in its place. Deterministic: each element of dx adds up its windows in a fixed order. Any strides. dx must not
/// overlap dy or x. `options` as for the forward pass, but the epilogue applies to dx, and the prologue of user code to
/// dy. Errors, first call and threads as for conv_forward().
void pool_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx, const PoolOptions& options,
                   Stream stream = nullptr);

/// As pool_forward() of mode max, and also writes the position of each maximum. indices: i32, extents of y: the
/// position in the channel of x, counted in logical order (h*W + w). The first of equal maxima in the order of the
/// window counts, and the last of several NaNs; -1 stands for a window without an element inside x. With a prologue of
/// user code, maxima are taken of its results. y and indices must not overlap x or one another. Otherwise as
/// pool_forward().
void pool_forward(Context& context, const Tensor& x, const Tensor& y, const Tensor& indices, const PoolOptions& options,
                  Stream stream = nullptr);

/// As pool_backward() of mode max, from the indices that pool_forward() wrote, without x. An index that is no position
/// of its window passes no gradient on. dx must not overlap dy or the indices. Deterministic.
void pool_backward_from_indices(Context& context, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                                const PoolOptions& options, Stream stream = nullptr);

/// Enqueues y = alpha * (x at the positions that `indices` name, 0 elsewhere) + beta * y on `stream`: max unpooling.
/// Where windows overlap and several indices name one position, y is the sum of their elements, which does not depend
/// on the order.
///
/// x, indices: N,C,P,Q   y: N,C,H,W; the extents of pool_forward() exchanged, with its `options`. The call equals
/// pool_backward_from_indices() with dy = x and dx = y; unpool_backward() is its gradient. y must not overlap x or the
/// indices. Bitwise reproducible.
void unpool_forward(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y,
                    const PoolOptions& options, Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * (dy at the positions that `indices` name) + beta * dx) on `stream` and returns
/// without waiting: the gradient of unpool_forward() by its x, and the second derivative of maximum pooling.
///
/// dy: N,C,H,W   indices, dx: N,C,P,Q; `options` as for unpool_forward(), but the epilogue applies to dx, and the
/// prologue of user code to dy. Several windows that name one position all get its element. An index that is no
/// position of its window gives 0. dx must not overlap dy or the indices. Bitwise reproducible.
void unpool_backward(Context& context, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                     const PoolOptions& options, Stream stream = nullptr);

}  // namespace kiln
