// local_norm_forward and local_norm_backward: local response normalisation (across channels) and divisive normalisation
// (over spatial dimensions) are one operation over different axes. The typed views of their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// y = alpha * x s^-lrn_beta + beta * y, with
///
///   s[i] = lrn_k + lrn_alpha / size^(number of axes) * sum over the window of i of (x - means)^2
///
/// The window has `size` elements along each of `axes`, from i - floor((size - 1) / 2) to i + floor(size / 2), less
/// what is outside x; what it is divided by stays the same there. This is cuDNN's window and ONNX's, for even sizes too
/// (PyTorch's even window is the mirror image). Without means they are 0.
///
/// As cuDNN documents it, the means are in the sum alone: it is x that is divided, not x - means. Each element is
/// compared with the mean at its own place, as Jarrett et al. (2009) do; cuDNN's documentation leaves that open. For
/// the contrast (x - mean) / deviation give x - means as x, and no means.
///
/// Numbers of the call: lrn_alpha, lrn_beta, lrn_k; lrn_alpha at least 0, lrn_beta and lrn_k above 0, all finite. NaN
/// in a window makes y NaN; an infinity makes itself NaN and what else has it in its window 0.
struct LocalNormForward {
  static constexpr int64_t most_size = 65535;

  TensorSpec x, y;                  ///< Equal extents of 1 to 5 dimensions.
  std::optional<TensorSpec> means;  ///< As x.
  std::vector<int64_t> axes{1};     ///< One to three.
  int64_t size = 5;                 ///< 1 to most_size.
  Blend blend;
  bool dynamic_batch = false;

  static LocalNormForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;
};

/// The gradients of the above by x and by means, given dy:
///
///   dx = alpha * (dy s^-lrn_beta + g) + beta * dx
///   dmeans = dmeans_alpha * -g + dmeans_beta * dmeans
///   g[j] = -2 lrn_alpha lrn_beta / size^(number of axes) * (x - means)[j] * sum of dy x s^(-lrn_beta - 1)
///
/// where the sum is over all i whose window has j: from j - floor(size / 2) to j + floor((size - 1) / 2) along each
/// axis. dmeans is not computed unless asked for. Numbers of the call: those of the forward, dmeans_alpha, dmeans_beta.
struct LocalNormBackward {
  TensorSpec x, dy, dx;                     ///< Equal extents.
  std::optional<TensorSpec> means, dmeans;  ///< As x.
  std::vector<int64_t> axes{1};
  int64_t size = 5;
  Blend blend;  ///< Blend of dx.
  Blend dmeans_blend;
  bool dynamic_batch = false;

  static LocalNormBackward of(const Request& request);
  Request request() const;
};

}  // namespace kiln
