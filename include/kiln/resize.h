// Resizing of images, by the nearest element or by interpolation, and its gradient.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <array>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/resize.h"
#include "kiln/tensor.h"

namespace kiln {

struct ResizeOptions {
  ResizeMode mode = ResizeMode::nearest;
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  ResizeRounding rounding = ResizeRounding::prefer_floor;  ///< For mode nearest.
  bool excludes_outside =
      false;             ///< For mode cubic. True: elements outside x do not count. False: they are the nearest of x.
  float cubic = -0.75f;  ///< For mode cubic: the coefficient, -1 to 0.
  /// Scales of the spatial axes, in the order of x's extents: y's extent is x's times the scale, rounded down. 0: the
  /// exact ratio of the extents. Scales beyond x's axes are ignored. Each scale compiles a kernel.
  std::array<float, 3> scale{};
  float alpha = 1;
  float beta = 0;              ///< Not 0: the old content of y is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * resize(x) + beta * y) on `stream` and returns without waiting.
///
/// x: N,C,H,W   y: N,C,P,Q; 1-D: N,C,W and N,C,Q; 3-D: N,C,D,H,W and N,C,Z,P,Q. Any strides; floating-point numbers or
/// integers. The modes are those of ONNX's Resize, without antialias; Resize has their formulas. In PyTorch's words:
/// `nearest-exact` is nearest with prefer_ceil; `nearest` is nearest with asymmetric and floor; `bilinear` and its like
/// are linear, `bicubic` is cubic, with half_pixel, or align_corners.
///
/// Positions are computed exactly, with a given scale taken as an exact fraction, so no rounding decides which element
/// is nearest. Sums are in f32. y must not overlap x. User code may have a prologue, which elements of x pass through
/// first. Bitwise reproducible. An empty batch is a no-op.
///
/// Throws Error(invalid_argument), nothing enqueued, also for a scale other than 0 and outside 1/128 to 128. Other
/// errors, first call and threads as for conv_forward().
void resize(Context& context, const Tensor& x, const Tensor& y, const ResizeOptions& options = {},
            Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * the gradient of resize() by x + beta * dx) on `stream` and returns without waiting:
/// the sum over the elements of y that an element of x is a part of, of dy times its weight. `options` as resize() was
/// given them; user code apart.
///
/// dy: N,C,P,Q   dx: N,C,H,W; 1-D and 3-D likewise. Any strides; floating-point numbers. Nothing is added atomically,
/// so results are bitwise reproducible. dx must not overlap dy. A prologue is applied to elements of dy. An empty batch
/// is a no-op. Errors, first call and threads as for resize().
void resize_backward(Context& context, const Tensor& dy, const Tensor& dx, const ResizeOptions& options = {},
                     Stream stream = nullptr);

}  // namespace kiln
