// norm_forward, norm_affine, norm_inference and norm_backward: layer, RMS, group, instance and batch normalisation are
// one operation over different axes. The typed views of their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/generator/operations/activation.h"
#include "kiln/generator/request.h"

namespace kiln {

enum class NormMode {
  standard,  ///< (x - mean) / sqrt(variance + epsilon), the variance that of the row's elements (divided by their
             ///< number)
  rms,       ///< x / sqrt(mean of x^2 + epsilon)
};

/// The name in requests; "?" for a value that is no mode.
std::string_view to_string(NormMode mode);

/// y = f(epilogue(alpha * (w xhat + b) + beta * y)), with xhat = (x - mean) r and r = 1 / sqrt(variance + epsilon) of
/// the row that an element lies in: of all that differ from it along `axes` alone.
///
/// Layer normalisation has the last axes; instance normalisation the spatial ones; group normalisation those and C/G of
/// x seen as N,G,C/G,...; batch normalisation the batch and, per channel, the spatial ones. w and b (one alone is
/// possible) have in each dimension x's extent or 1, which repeats. The epilogue is `add`, `relu` or both in this
/// order, or user code; f is any activation, identity if none is asked for, and does not go with `relu` or user code,
/// which has it in its expression. Its numbers stand behind epsilon and momentum.
///
/// mean and inv_deviation (r): f32, x's extents with 1 along the axes; not computed unless asked for. running_mean and
/// running_variance: as mean, for mode standard alone; each becomes (1 - momentum) of itself and momentum of the row's,
/// the variance divided by one less than the elements (by 1 for one element).
///
/// Statistics are sound whatever the mean: sums of squares of differences, merged as Chan, Golub and LeVeque do. A row
/// that holds NaN or an infinity gives NaN throughout; one without elements has mean and variance 0.
struct NormForward {
  TensorSpec x, y;
  std::optional<TensorSpec> w, b, mean, inv_deviation, running_mean, running_variance;
  std::vector<int64_t> axes{-1};
  NormMode mode = NormMode::standard;
  std::vector<EpilogueStage> epilogue;
  ActivationMode activation = ActivationMode::identity;
  std::optional<TensorSpec> residual;  ///< Residual of epilogue add; nothing: as y.
  Blend blend;
  bool dynamic_batch = false;

  static NormForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;
};

/// norm_forward as one multiplication and one addition for each element, for a kernel that applies them while it loads
/// x: w xhat + b = x scale + shift, with
///
///   scale = w r, shift = b - mean scale      rms: the mean counts as 0
///
/// scale and shift: f32, of equal extents: x's in dimensions that are no axes; along an axis x's where w or b has them,
/// else x's or 1, which is the default. Statistics, w, b and rows without elements are as in NormForward; a row that
/// holds NaN or an infinity gives NaN in both. User code has its epilogue on scale alone: shift is computed of scale as
/// it was before.
struct NormAffine {
  TensorSpec x, scale, shift;
  std::optional<TensorSpec> w, b;
  std::vector<int64_t> axes{-1};
  NormMode mode = NormMode::standard;
  bool dynamic_batch = false;

  static NormAffine of(const Request& request);
  /// Makes the request; scale and shift may have no extents (inferred).
  Request request() const;
};

/// norm_forward with the statistics given: xhat = (x - running_mean) / sqrt(running_variance + epsilon). Batch
/// normalisation when it does not train.
struct NormInference {
  TensorSpec x, y, running_mean, running_variance;
  std::optional<TensorSpec> w, b;
  std::vector<int64_t> axes{0, 2, 3};
  std::vector<EpilogueStage> epilogue;
  ActivationMode activation = ActivationMode::identity;
  std::optional<TensorSpec> residual;
  Blend blend;
  bool dynamic_batch = false;

  static NormInference of(const Request& request);
  Request request() const;
};

/// The gradients of y = norm_forward(x, w, b), given dy, what the forward saved, and w:
///
///   dx = alpha * r (g - mean(g) - xhat mean(g xhat)) + beta * dx      with g = dy w and means over the row
///   rms: dx = alpha * r (g - xhat mean(g xhat)) + beta * dx, xhat = x r
///   dw = parameter_alpha * sum(dy xhat) + parameter_beta * dw, over all that w (or dw, db) repeats
///   db = parameter_alpha * sum(dy) + parameter_beta * db
///   dresidual = dresidual_alpha * dy + dresidual_beta * dresidual, for an epilogue with `add`
///
/// y: the forward's result, where that ended in relu: dy counts where y > 0 and as 0 elsewhere, everywhere above. Where
/// it ended in the activation f, dy counts as dy f'(z) with z = w xhat + b + residual, which is computed again: b and
/// residual are those of the forward, where it had them. dw, db and dresidual are not computed unless asked for. User
/// code applies to dx alone, but for a prologue, which is on dy: of a forward that had some, dy is to be taken back
/// through it.
/// Numbers of the call: the four scales of parameters and residual, in this order, and those of f.
struct NormBackward {
  TensorSpec dy, x, inv_deviation, dx;
  std::optional<TensorSpec> mean, w, b, y, residual, dw, db, dresidual;
  std::vector<int64_t> axes{-1};
  NormMode mode = NormMode::standard;
  ActivationMode activation = ActivationMode::identity;
  Blend blend;            ///< Blend of dx.
  Blend parameter_blend;  ///< Blend of dw and db.
  Blend dresidual_blend;
  bool dynamic_batch = false;

  static NormBackward of(const Request& request);
  Request request() const;
};

}  // namespace kiln
