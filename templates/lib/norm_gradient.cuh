// The gradients of a normalisation: kiln/generator/operations/norm.h has the formulas.
//
// From the prelude: RMS; ACTIVATION (of the forward); ALPHA and BETA, PARAMETER_ALPHA and PARAMETER_BETA (of dw and
// db), DRESIDUAL_ALPHA and DRESIDUAL_BETA; and HAS_W, HAS_Y and the like: which of the optional operands there are.
#include "lib/activation.cuh"
#include "lib/blend.cuh"
#include "lib/math.cuh"

using ParameterScales = Scales<PARAMETER_ALPHA, PARAMETER_BETA>;
using ResidualScales = Scales<DRESIDUAL_ALPHA, DRESIDUAL_BETA>;

// The sums over some elements: of g = dy w, or of dy, and of that times xhat.
struct GradientSums {
  static constexpr int WORDS = 2;
  float words[WORDS];

  __device__ __forceinline__ static GradientSums of_nothing() { return {{0.0f, 0.0f}}; }
  __device__ __forceinline__ void add(float g, float xhat) {
    words[0] += g;
    words[1] += g * xhat;
  }
  __device__ __forceinline__ static GradientSums merged(const GradientSums& a, const GradientSums& b) {
    return {{a.words[0] + b.words[0], a.words[1] + b.words[1]}};
  }
  // Means of g with `w` as a factor of all elements, over their number.
  __device__ __forceinline__ GradientSums means(float w, float count) const {
    return {{words[0] * w / count, words[1] * w / count}};
  }
};

// The dy that counts: none where relu gave 0.
__device__ __forceinline__ float passed(float dy, float y) {
  if constexpr (HAS_Y) return y > 0.0f ? dy : 0.0f;
  return dy;
}

constexpr bool ACTIVATES = ACTIVATION != ACTIVATION_IDENTITY;

// The same of a forward that ended in the activation of w xhat + b + residual.
__device__ __forceinline__ float passed(float dy, float xhat, float w, float b, float residual,
                                        const ActivationNumbers& n) {
  float z = xhat;
  if constexpr (HAS_W) z *= w;
  if constexpr (HAS_B) z += b;
  if constexpr (HAS_RESIDUAL) z += residual;
  const float derivative = activation_slope<ACTIVATION>(z, n.slope, n.offset, n.low, n.high);
  return activation_gradient<ACTIVATION>(derivative, dy);
}

__device__ __forceinline__ float normalised(float x, float mean, float inv_deviation) {
  return (RMS ? x : x - mean) * inv_deviation;
}

// The gradient of an element, given the means over its row.
__device__ __forceinline__ float gradient(float g, float xhat, float inv_deviation, const GradientSums& means) {
  if constexpr (RMS) return inv_deviation * (g - xhat * means.words[1]);
  return inv_deviation * (g - means.words[0] - xhat * means.words[1]);
}
