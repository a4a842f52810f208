// Normalisations and their gradients: layer, RMS, group, instance and batch.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <array>
#include <initializer_list>
#include <optional>

#include "kiln/activation.h"
#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/norm.h"
#include "kiln/tensor.h"

namespace kiln {

/// One to six dimensions; negative ones count from the end.
struct Axes {
  Axes() = default;
  /// Throws Error(invalid_argument) for more than six.
  Axes(std::initializer_list<int> axes);

  std::array<int, Tensor::max_rank> axis{};
  int count = 0;
};

struct NormOptions {
  NormMode mode = NormMode::standard;
  std::optional<Tensor> w{}, b{};                            ///< Scale and shift: in each dimension x's extent, or 1.
  std::optional<Tensor> mean{}, inv_deviation{};             ///< Outputs, f32, for norm_backward().
  std::optional<Tensor> running_mean{}, running_variance{};  ///< f32; updated.
  float epsilon = 1e-5F;                                     ///< Finite, at least 0.
  float momentum = 0.1F;    ///< The part of this call in the running statistics: 0 to 1.
  Epilogue epilogue{};      ///< add(residual), relu, add(residual) + relu, or user code: kiln::expression(...).
  Activation activation{};  ///< After the epilogue, in place of relu; not with user code, which can apply one itself.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; the batch is no axis then.
};

/// Enqueues y = f(epilogue(alpha * (w xhat + b) + beta * y)) on `stream` and returns without waiting. A row is the set
/// of elements that differ along `axes` only. xhat is x minus the mean of its row, divided by the row's standard
/// deviation; f is the activation. NormForward has the formula, and the results for NaN and empty rows. User code may
/// have a prologue on x; statistics are taken of the prologue's results.
///
/// x, y: equal extents of 1 to 6 dimensions. mean, inv_deviation, running_mean, running_variance: x's extents with 1
/// along the axes. Any strides; dtypes may differ; sums are in f32, accurate for any mean. Bitwise reproducible. In
/// place: y may be x, or the residual, with its dtype and strides; otherwise outputs must share no element with other
/// operands. An empty batch is a no-op. Errors, first call and threads as for conv_forward().
void norm_forward(Context& context, const Axes& axes, const Tensor& x, const Tensor& y, const NormOptions& options = {},
                  Stream stream = nullptr);

struct NormAffineOptions {
  NormMode mode = NormMode::standard;
  std::optional<Tensor> w{}, b{};  ///< As in norm_forward().
  float epsilon = 1e-5F;           ///< Finite, at least 0.
  Epilogue epilogue{};             ///< On scale; user code only: expression(). Its prologue is on x.
  bool dynamic_batch = false;      ///< One kernel for every batch of a power-of-two bucket; the batch is no axis then.
};

/// Enqueues scale and shift with w xhat + b = x scale + shift on `stream` and returns without waiting: what
/// norm_forward() computes, for a kernel that applies it while it loads x. NormAffine has the formula.
///
/// x: 1 to 6 dimensions. scale, shift: f32, of equal extents: x's, but along axes that w and b repeat in 1 will do. Any
/// strides; sums are in f32, accurate for any mean. Bitwise reproducible. Outputs must share no element with other
/// operands. An empty batch is a no-op. Errors, first call and threads as for conv_forward().
void norm_affine(Context& context, const Axes& axes, const Tensor& x, const Tensor& scale, const Tensor& shift,
                 const NormAffineOptions& options = {}, Stream stream = nullptr);

/// norm_forward() with given statistics: xhat = (x - running_mean) / sqrt(running_variance + epsilon). `options`: w, b,
/// epsilon, epilogue, activation, alpha, beta and dynamic_batch.
void norm_inference(Context& context, const Axes& axes, const Tensor& x, const Tensor& running_mean,
                    const Tensor& running_variance, const Tensor& y, const NormOptions& options = {},
                    Stream stream = nullptr);

struct NormGradientOptions {
  NormMode mode = NormMode::standard;
  std::optional<Tensor> w{};          ///< As in the forward.
  std::optional<Tensor> mean{};       ///< Saved by the forward; not for rms.
  std::optional<Tensor> y{};          ///< The forward's result, if its epilogue ended in relu.
  Activation activation{};            ///< As in the forward. Its gradient is computed from x.
  std::optional<Tensor> b{};          ///< As in the forward; only with an activation.
  std::optional<Tensor> residual{};   ///< The forward's; only with an activation.
  std::optional<Tensor> dw{}, db{};   ///< Outputs, of w's extents: the gradients of w and b.
  std::optional<Tensor> dresidual{};  ///< Output: the gradient of the residual.
  float alpha = 1;                    ///< For dx.
  float beta = 0;
  float parameter_alpha = 1;  ///< For dw and db.
  float parameter_beta = 0;   ///< With 1 gradients accumulate over calls.
  float dresidual_alpha = 1;
  float dresidual_beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; without dw and db.
  Epilogue epilogue{};         ///< On dx; user code only: expression().
};

/// Enqueues the gradients of norm_forward() on `stream` and returns without waiting: dx = epilogue(alpha * (gradient
/// with respect to x) + beta * dx) and, if given, dw, db and dresidual, with scales of their own and no epilogue.
/// NormBackward has the formulas. If the forward had an epilogue of user code, dy is the gradient with respect to that
/// code's input. A prologue of user code, which applies to dy, may compute it from the gradient of y.
///
/// dy, x, dx, residual: equal extents, any strides; dtypes may differ; sums are in f32. inv_deviation: as saved by the
/// forward. Bitwise reproducible. In place: dx may be dy or x, dresidual may be dy; otherwise outputs must share no
/// element with other operands. An empty batch multiplies dw and db by parameter_beta. Errors, first call and threads
/// as for conv_forward().
void norm_backward(Context& context, const Axes& axes, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                   const Tensor& dx, const NormGradientOptions& options = {}, Stream stream = nullptr);

// The usual normalisations. Their parameters and statistics may have fewer dimensions than x, as said below: b, dw and
// db are as w, all statistics as mean. Tensors of x's rank are taken as norm_forward() takes them.

/// Layer normalisation, along the dimensions from `first_axis` on (negative: from the end). w: the extents of these
/// dimensions. mean: the extents before them.
void layer_norm_forward(Context& context, int first_axis, const Tensor& x, const Tensor& y,
                        const NormOptions& options = {}, Stream stream = nullptr);
void layer_norm_backward(Context& context, int first_axis, const Tensor& dy, const Tensor& x,
                         const Tensor& inv_deviation, const Tensor& dx, const NormGradientOptions& options = {},
                         Stream stream = nullptr);

/// RMS normalisation: layer normalisation with mode rms.
void rms_norm_forward(Context& context, int first_axis, const Tensor& x, const Tensor& y,
                      const NormOptions& options = {}, Stream stream = nullptr);
void rms_norm_backward(Context& context, int first_axis, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                       const Tensor& dx, const NormGradientOptions& options = {}, Stream stream = nullptr);

/// Instance normalisation, of each channel of each image. x: N,C and one to three spatial dimensions. w: C. mean: N,C.
void instance_norm_forward(Context& context, const Tensor& x, const Tensor& y, const NormOptions& options = {},
                           Stream stream = nullptr);
void instance_norm_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                            const Tensor& dx, const NormGradientOptions& options = {}, Stream stream = nullptr);

/// Group normalisation, of each of `groups` groups of neighbouring channels of each image. x: N,C and one to three
/// spatial dimensions. w: C, or `groups`: one element for all channels of a group. mean: N,groups.
void group_norm_forward(Context& context, int64_t groups, const Tensor& x, const Tensor& y,
                        const NormOptions& options = {}, Stream stream = nullptr);
/// The same as scale and shift: N,C, or N,groups where there is one w and one b for all channels of a group.
void group_norm_affine(Context& context, int64_t groups, const Tensor& x, const Tensor& scale, const Tensor& shift,
                       const NormAffineOptions& options = {}, Stream stream = nullptr);
void group_norm_backward(Context& context, int64_t groups, const Tensor& dy, const Tensor& x,
                         const Tensor& inv_deviation, const Tensor& dx, const NormGradientOptions& options = {},
                         Stream stream = nullptr);

/// Batch normalisation, of each channel of all images, in training: reads x twice and writes y once. x: N,C and up to
/// three spatial dimensions. w, mean, running_mean: C. For statistics of each activation, use norm_forward() with the
/// axes {0}.
void batch_norm_forward(Context& context, const Tensor& x, const Tensor& y, const NormOptions& options = {},
                        Stream stream = nullptr);
void batch_norm_inference(Context& context, const Tensor& x, const Tensor& running_mean, const Tensor& running_variance,
                          const Tensor& y, const NormOptions& options = {}, Stream stream = nullptr);
void batch_norm_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                         const Tensor& dx, const NormGradientOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
