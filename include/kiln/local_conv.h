// Local convolution, and its gradients. Each output position, or each region of a grid over them, has filters of its
// own.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/tensor.h"
#include "kiln/window.h"

namespace kiln {

/// Number of regions along each axis of the outputs; 0: one for each output. Use d for operands with three spatial
/// dimensions, and w alone for operands with one.
struct Grid {
  int64_t h = 0, w = 0, d = 0;
};

struct LocalConvOptions {
  Grid grid{};  ///< Default: filters for each output position, a locally connected layer.
  Padding pad{};
  Pair stride{1, 1};
  Pair dilation{1, 1};
  DepthWindow depth{};  ///< For operands of three spatial dimensions.
  int64_t groups = 1;
  bool mirrored = false;  ///< True: convolution with mirrored filters. False: cross-correlation.
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue{};
  Arithmetic arithmetic{};     ///< Permissions beyond f32 products and sums.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket, instead of one per batch.
};

/// Enqueues y = epilogue(alpha * conv(x, filters of each output) + beta * y) on `stream` and returns without waiting:
/// y[n,k,p,q] = sum over c, r, s of x[n,c,p * stride.h - pad.top + r * dilation.h, ...] * w[region(p,q) * K + k,c,r,s].
///
/// x: N,C,H,W   w: (regions*K),C/groups,R,S or regions,K,C/groups,R,S   y: N,K,P,Q, the extents of conv_forward(). 1-D
/// and 3-D as there.
///
/// Regions: along an axis of P outputs, output p belongs to region floor(p * grid.h / P), with 1 <= grid.h <= P. So
/// every region has floor(P / grid.h) or ceil(P / grid.h) neighbouring outputs. region(p,q) = floor(p * grid.h / P) *
/// grid.w + floor(q * grid.w / Q). Along dimension 0 of w, the filters of a region follow those of the region before.
/// Or w has one dimension more than x, and its dimension 0 is the region: then regions may have any stride, as with K
/// innermost. A grid of P x Q is a locally connected layer. A grid of 1 x 1 is a plain convolution, for which
/// conv_forward() has faster kernels.
///
/// Any strides; dtypes may differ between operands; sums are in f32; bitwise reproducible. With beta = 0, y is not
/// read. y must share no element with x, w or the bias. A bias has K elements, one for each channel of y. For a bias
/// for each output position, use a residual (kiln::add) with a batch stride of 0, or user code.
///
/// An empty batch is a no-op. First call, workspace, threads and errors as for conv_forward().
void local_conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y,
                        const LocalConvOptions& options = {}, Stream stream = nullptr);

/// Options of the gradients of a local convolution: the parameters of the forward convolution, then those of the
/// gradient's call.
struct LocalConvBackwardOptions {
  Grid grid{};
  Padding pad{};
  Pair stride{1, 1};
  Pair dilation{1, 1};
  DepthWindow depth{};  ///< For operands of three spatial dimensions.
  int64_t groups = 1;
  bool mirrored = false;
  float alpha = 1;
  float beta = 0;
  Arithmetic arithmetic{};
  bool dynamic_batch = false;
  Epilogue epilogue{};  ///< On dx: stages or user code. On dw: user code, for a fixed batch.
};

/// Enqueues dx = epilogue(alpha * (gradient of the local convolution by x, given dy) + beta * dx) on `stream` and
/// returns without waiting: dx[n,c,h,w] = sum over k, r, s of dy[n,k,p,q] * w[region(p,q) * K + k,c,r,s] with p *
/// stride.h - pad.top + r * dilation.h = h, and q likewise.
///
/// dy: N,K,P,Q   w: as that of local_conv_forward()   dx: N,C,H,W, and P, Q are those of local_conv_forward() on dx.
/// Any strides; dtypes may differ; sums are in f32. dx must share no element with dy, w or the bias. User code as in
/// conv_backward_data(). Bitwise reproducible. One kernel adds up columns in a workspace of N*P*Q*C*R*S f32 values;
/// requests that would need over a gigabyte use other kernels. Otherwise as local_conv_forward().
void local_conv_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                              const LocalConvBackwardOptions& options = {}, Stream stream = nullptr);

/// Enqueues dw = epilogue(alpha * (gradient of the local convolution by its filters, given dy) + beta * dw) on `stream`
/// and returns without waiting: dw[region * K + k,c,r,s] = sum over n and the (p,q) of the region of dy[n,k,p,q] *
/// x[n,c,p * stride.h - pad.top + r * dilation.h, ...].
///
/// x: N,C,H,W   dy: N,K,P,Q   dw: as w of local_conv_forward(). Any strides; dtypes may differ; sums are in f32. dw
/// must share no element with x or dy. Bitwise reproducible. An empty batch gives epilogue(beta * dw), not nothing.
/// With beta = 1 gradients accumulate over calls. With a dynamic batch only the simple kernel applies. Otherwise as
/// local_conv_forward(). The gradient of a bias of K elements is conv_backward_bias().
void local_conv_backward_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                const LocalConvBackwardOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
