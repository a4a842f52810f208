// Convolution.
#pragma once

#include <cstdint>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/tensor.h"
#include "kiln/window.h"

namespace kiln {

struct ConvOptions {
  Padding pad{};
  Pair stride{1, 1};
  Pair dilation{1, 1};
  DepthWindow depth{};  ///< For operands of three spatial dimensions.
  int64_t groups = 1;
  bool mirrored = false;  ///< True convolution: the filter is mirrored. False: cross-correlation, as frameworks do.
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue{};
  Arithmetic arithmetic{};     ///< Liberties beyond f32 sums.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket, instead of one per batch.
};

/// Enqueues y = epilogue(alpha * conv(x, w) + beta * y) on `stream` and returns without waiting.
///
/// x: N,C,H,W   w: K,C/groups,R,S   y: N,K,P,Q with P = floor((H + pad.top + pad.bottom - dilation.h*(R-1) - 1) /
/// stride.h) + 1, and so for Q. 1-D: N,C,W and K,C/groups,S and N,K,Q; 3-D: N,C,D,H,W and so on. Any strides; dtypes
/// may differ between operands; sums are in f32. With beta = 0, y is not read. y must share no element with x, w or the
/// bias; regions of one tensor may interleave.
///
/// The first call for a shape compiles (see Context::prepare); it never tunes. Later calls find their plan in a
/// fraction of a microsecond. Some variants need workspace, which the Context allocates and lends to one call at a
/// time: such calls of several threads on one stream take turns, and more than 16 streams that are busy at once share
/// the workspaces of 16. While `stream` is captured into a graph they are refused: use a Plan with your own workspace
/// there. An empty batch is a no-op.
///
/// Thread-safe. Throws Error: invalid_argument (nothing enqueued), unsupported, compile_failed, driver_error.
void conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options = {},
                  Stream stream = nullptr);

}  // namespace kiln
