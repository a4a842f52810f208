// Convolution and its gradients.
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
  bool mirrored = false;  ///< True: convolution with a mirrored filter. False: cross-correlation, as in frameworks.
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue{};
  Arithmetic arithmetic{};     ///< Permissions beyond f32 products and sums.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket, instead of one per batch.
};

/// Enqueues y = epilogue(alpha * conv(x, w) + beta * y) on `stream` and returns without waiting.
///
/// x: N,C,H,W   w: K,C/groups,R,S   y: N,K,P,Q with P = floor((H + pad.top + pad.bottom - dilation.h*(R-1) - 1) /
/// stride.h) + 1, and so for Q. 1-D: N,C,W and K,C/groups,S and N,K,Q; 3-D: N,C,D,H,W and so on. Any strides; dtypes
/// may differ between operands; sums are in f32, or in i32 of 8-bit integers. With beta = 0, y is not read. y must
/// share no element with x, w or the bias; regions of one tensor may interleave. Bitwise reproducible: sums that are
/// split over blocks are added up in order.
///
/// The first call for a shape compiles (see Context::prepare). A call tunes only if ContextOptions::tuning says so.
/// Later calls find their plan in a fraction of a microsecond. An empty batch is a no-op.
///
/// Some variants need workspace. The Context allocates it, and lends it to one call at a time: calls of several threads
/// on one stream take turns, and more than 16 streams that are busy at once share the workspaces of 16. While `stream`
/// is captured into a CUDA graph, calls that need workspace and first calls of a shape are refused, and the capture
/// stays intact: make the plan before, and run a Plan with your own workspace there. Kiln's work on other streams
/// (compiling, allocating) leaves the capture alone.
///
/// Thread-safe. Throws Error, with nothing enqueued except kernels before a launch that the driver refused:
/// - invalid_argument: tensors that do not fit each other; memory that overlaps; an address that is null, misaligned or
///   of host memory that the device does not reach; a tensor that extends beyond the end of its allocation of device
///   memory; options out of range; user code with unknown names.
/// - unsupported: no variant that ContextOptions permit serves the request; or a capture forbids the call, see above.
/// - compile_failed: user code, or every kernel that serves the request, is refused by NVRTC.
/// - missing_library: no bundle has the request, and NVRTC is missing. io_error, parse_error: the bundle that has the
///   request is damaged.
/// - out_of_memory: too little memory of the host, or of the device for code or workspace.
/// - driver_error: a driver call failed; earlier work may have caused the fault.
void conv_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y, const ConvOptions& options = {},
                  Stream stream = nullptr);

/// Options of the gradients of a convolution: the parameters of the forward convolution, then those of the gradient's
/// call.
struct ConvBackwardOptions {
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

/// Enqueues dx = epilogue(alpha * (gradient of conv(x, w) with respect to x) + beta * dx) on `stream` and returns
/// without waiting. This is transposed convolution of dy: dx[n,c,h,w] = sum over k, r, s of dy[n,k,p,q] * w[k,c,r,s]
/// with p * stride.h - pad.top + r * dilation.h = h, and q likewise. A bias has an element for each channel of dx.
///
/// dy: N,K,P,Q, the gradient with respect to y = conv(x, w)   w: K,C/groups,R,S   dx: N,C,H,W
///
/// conv_forward() on dx gives P and Q: H = (P-1) * stride.h + dilation.h * (R-1) + 1 - pad.top - pad.bottom + output
/// padding. The extents of dx imply the output padding, which is less than the stride. Any strides; dtypes may differ;
/// sums are in f32. dx must share no element with dy, w or the bias. User code calls the channel of dx `c`; its
/// prologue applies to dy. Bitwise reproducible. Otherwise as conv_forward().
void conv_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                        const ConvBackwardOptions& options = {}, Stream stream = nullptr);

/// Enqueues dw = epilogue(alpha * (gradient of conv(x, w) with respect to w) + beta * dw) on `stream` and returns
/// without waiting: dw[k,c,r,s] = sum over n, p, q of dy[n,k,p,q] * x[n,c,p * stride.h - pad.top + r * dilation.h,...].
///
/// x: N,C,H,W   dy: N,K,P,Q, the extents of conv_forward()   dw: K,C/groups,R,S. Any strides; dtypes may differ; sums
/// are in f32. dw must share no element with x or dy. Bitwise reproducible: no sums by atomics. An empty batch gives
/// epilogue(beta * dw), not nothing. With beta = 1 gradients accumulate over calls. With a dynamic batch, kernels
/// that split the work by the batch do not apply. The prologue of user code applies to x, whose channels it calls `c`.
/// Otherwise as conv_forward().
void conv_backward_filter(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                          const ConvBackwardOptions& options = {}, Stream stream = nullptr);

struct ConvBackwardBiasOptions {
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;
  Epilogue epilogue{};  ///< User code, for a fixed batch. Its prologue applies to dy, whose channels it calls `c`.
};

/// Enqueues db = epilogue(alpha * (sum of dy over all but its channels) + beta * db) on `stream` and returns without
/// waiting.
///
/// dy: N,K and up to three spatial dimensions, any strides   db: K. They must share no element. Bitwise reproducible.
/// An empty batch gives epilogue(beta * db). Otherwise as conv_forward().
void conv_backward_bias(Context& context, const Tensor& dy, const Tensor& db,
                        const ConvBackwardBiasOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
