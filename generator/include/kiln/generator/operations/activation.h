// The activation functions, and activation_forward and activation_backward: the typed views of their requests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // kiln::relu is an epilogue; a scoped enumerator hides nothing
/// y = f(x), element by element. slope, offset, low and high are numbers of the call; docs/request-syntax.md has the
/// derivatives. NaN gives NaN; infinities give the limit of f. At the kinks the derivative is PyTorch's.
enum class ActivationMode {
  identity,      ///< x
  relu,          ///< max(x, 0)
  clipped_relu,  ///< min(max(x, 0), high); high >= 0
  clip,          ///< min(max(x, low), high); low <= high
  leaky_relu,    ///< x, or slope x below 0
  sigmoid,       ///< s(x) = 1 / (1 + exp(-x))
  tanh,          ///< tanh(x)
  elu,           ///< x, or slope (exp(x) - 1) below 0
  selu,          ///< 1.0507 x, or 1.7581 (exp(x) - 1) below 0: Klambauer et al., Self-Normalizing Neural Networks, 2017
  softplus,      ///< log(1 + exp(slope x)) / slope; slope > 0, finite and no subnormal
  swish,         ///< x s(slope x); SiLU with slope 1
  gelu,          ///< x Phi(x), Phi the normal distribution: 0.5 x (1 + erf(x / sqrt(2)))
  gelu_tanh,     ///< 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  hard_swish,    ///< x min(max(x + 3, 0), 6) / 6
  hard_sigmoid,  ///< min(max(slope x + offset, 0), 1)
  mish,          ///< x tanh(log(1 + exp(x)))
};
#pragma GCC diagnostic pop

std::string_view to_string(ActivationMode mode);
/// Every mode, in the order above.
const std::vector<ActivationMode>& activation_modes();

/// The numbers that activations read, each by some of the modes. Their order is that of Operation::scalars().
struct ActivationNumbers {
  float slope = 0, offset = 0, low = 0, high = 0;
};

/// The usual numbers of a mode: leaky_relu slope 0.01; elu, softplus and swish slope 1; hard_sigmoid slope 1/6 and
/// offset 0.5; clipped_relu high 6; clip between the infinities. 0 where the mode reads none.
ActivationNumbers usual_numbers(ActivationMode mode);

/// Whether the derivative can be told from y alone: identity, relu, clipped_relu, leaky_relu and elu (with slopes >=
/// 0), sigmoid, tanh, selu, softplus (with slope > 0).
bool has_derivative_from_y(ActivationMode mode);

/// The largest |f'(x)| of any x, rounded up: f moves by at most so much times what x does.
double steepest_slope(ActivationMode mode, float slope);

/// The function that another operation applies to its result, its attribute `activation`: identity where it has none.
ActivationMode fused_activation_of(const Request& request);

/// y = epilogue(alpha * f(x) + beta * y). x, y: equal extents of 1 to 5 dimensions, any strides; integers with the
/// identity only.
struct ActivationForward {
  TensorSpec x, y;
  ActivationMode mode = ActivationMode::relu;
  Blend blend;
  bool dynamic_batch = false;

  static ActivationForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;
};

/// dx = alpha * f'(x) * dy + beta * dx, the derivative taken at x or told from y = f(x). Equal extents of 1 to 5
/// dimensions, any strides.
struct ActivationBackward {
  std::optional<TensorSpec> x, y;  ///< One of them.
  TensorSpec dy, dx;
  ActivationMode mode = ActivationMode::relu;
  Blend blend;
  bool dynamic_batch = false;

  static ActivationBackward of(const Request& request);
  /// Makes the request; dx may have no extents (inferred).
  Request request() const;
};

}  // namespace kiln
