// Local response normalisation across channels (LRN) and divisive normalisation over spatial neighbours (LCN), and
// their gradients.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>
#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/tensor.h"

namespace kiln {

struct LocalNormOptions {
  int64_t size = 5;                  ///< Elements of the window along each axis.
  float lrn_alpha = 1e-4F;           ///< At least 0; divided by the elements of the window.
  float lrn_beta = 0.75F;            ///< Above 0.
  float lrn_k = 2;                   ///< Above 0.
  std::optional<Tensor> means = {};  ///< Extents of x; subtracted from x before squaring.
  float alpha = 1;
  float beta = 0;                           ///< Not 0: the old content of y (backward: dx) is read.
  float dmeans_alpha = 1, dmeans_beta = 0;  ///< As alpha and beta, for the dmeans of lrn_backward() and lcn_backward().
  bool dynamic_batch = false;               ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue{};                      ///< On y (backward: dx); user code only: expression().
};

/// Enqueues y = epilogue(alpha * x s^-lrn_beta + beta * y) on `stream` and returns without waiting, with
///
///   s[n, c, ...] = lrn_k + lrn_alpha / size * sum of x[n, j, ...]^2
///   j from c - floor((size - 1) / 2) to c + floor(size / 2)
///
/// over all j that are channels: the formula and the window of cuDNN and ONNX. (For an even size, PyTorch's window has
/// the extra channel on the other side.)
///
/// x, y: N,C and up to three spatial dimensions, equal extents, any strides; dtypes may differ; computed in f32. An
/// element of y depends on the neighbours in x, so y must share no element with x: no call works in place. The numbers
/// may change from call to call without another plan. User code may have a prologue on x. NaN in a window gives NaN.
/// The output at an infinity is NaN, and other outputs with an infinity in their window are 0. Bitwise reproducible. An
/// empty batch is a no-op.
///
/// Throws Error(invalid_argument), nothing enqueued, also for a size outside 1 to 65535, and for numbers that are not
/// finite or too small. Other errors, first call and threads as for conv_forward().
void lrn_forward(Context& context, const Tensor& x, const Tensor& y, const LocalNormOptions& options = {},
                 Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * g + beta * dx) on `stream`; g is the gradient with respect to x of lrn_forward() with
/// the same numbers and no epilogue (LocalNormBackward has the formula). User code may have a prologue on dy; dmeans is
/// computed from its results too.
///
/// `dmeans`, if given, becomes dmeans_alpha * (gradient with respect to options.means, or to means of 0) + dmeans_beta
/// * dmeans. dx and dmeans must share no element with other operands. Otherwise as lrn_forward().
void lrn_backward(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
                  const LocalNormOptions& options = {}, const std::optional<Tensor>& dmeans = {},
                  Stream stream = nullptr);

/// The same with windows over all spatial dimensions, in each channel by itself: cuDNN's divisive normalisation.
///
///   s[n, c, i] = lrn_k + lrn_alpha / size^(spatial dimensions) * sum over the window of i of (x - means)^2
///
/// x: N,C and one to three spatial dimensions. As in cuDNN, the means count in the sum only, and x is divided without
/// subtracting them. For local contrast normalisation, (x - mean) / deviation, give x - mean as x, and no means. In
/// gradients the means are an input of their own: if they depend on x, add that part of the gradient yourself.
void lcn_forward(Context& context, const Tensor& x, const Tensor& y, const LocalNormOptions& options = {},
                 Stream stream = nullptr);
void lcn_backward(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dx,
                  const LocalNormOptions& options = {}, const std::optional<Tensor>& dmeans = {},
                  Stream stream = nullptr);

}  // namespace kiln
