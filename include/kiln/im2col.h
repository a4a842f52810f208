// Images as columns of windows, and back: PyTorch's unfold and fold.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/im2col.h"
#include "kiln/tensor.h"
#include "kiln/window.h"

namespace kiln {

struct Im2colOptions {
  Pair window{};  ///< {0, 0}: all of the image.
  Padding pad{};
  Pair stride{1, 1};
  Pair dilation{1, 1};
  DepthWindow depth{};  ///< For operands of three spatial dimensions.
  float alpha = 1;
  float beta = 0;              ///< Not 0: the old content of y is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue{};         ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * im2col(x) + beta * y) on `stream` and returns without waiting: channel (c*R + r)*S + s
/// of y at (p,q) is the element of channel c of x at tap (r,s) of the window of (p,q), and 0 where that is outside x.
///
/// x: N,C,H,W   y: N,C*R*S,P,Q, with the extents of conv_forward's outputs; 1-D: N,C,W and N,C*S,Q; 3-D: N,C,D,H,W and
/// N,C*T*R*S,Z,P,Q. Any strides; floating-point numbers or integers. y must not overlap x. Bitwise reproducible. An
/// empty batch is a no-op, here and below. Errors, first call and threads as for conv_forward().
void im2col(Context& context, const Tensor& x, const Tensor& y, const Im2colOptions& options = {},
            Stream stream = nullptr);

/// Enqueues y = epilogue(alpha * col2im(x) + beta * y) on `stream` and returns without waiting: the gradient of
/// im2col() by its x. Each element of y is the sum of the elements of x that im2col() copies from it, and 0 where there
/// is none.
///
/// x: N,C*R*S,P,Q   y: N,C,H,W, whose columns have the extents of x; 1-D and 3-D likewise. Any strides; floating-point
/// numbers. Nothing is added atomically, so results are bitwise reproducible. y must not overlap x. Errors, first call
/// and threads as for conv_forward().
void col2im(Context& context, const Tensor& x, const Tensor& y, const Im2colOptions& options = {},
            Stream stream = nullptr);

}  // namespace kiln
