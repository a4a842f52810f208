// The activation functions and their derivatives, in forms that neither cancel nor overflow: exponentials are taken of
// -|x| only, and differences such as 1 - tanh(x)^2 are written as the products that they are.
//
// NaN gives NaN and infinities give the limit, for the functions and their derivatives; docs/numerics.md has the
// bounds. kiln/generator/operations/activation.h has the formulas.
#include "lib/math.cuh"

enum : int {  // as ActivationMode
  ACTIVATION_IDENTITY,
  ACTIVATION_RELU,
  ACTIVATION_CLIPPED_RELU,
  ACTIVATION_CLIP,
  ACTIVATION_LEAKY_RELU,
  ACTIVATION_SIGMOID,
  ACTIVATION_TANH,
  ACTIVATION_ELU,
  ACTIVATION_SELU,
  ACTIVATION_SOFTPLUS,
  ACTIVATION_SWISH,
  ACTIVATION_GELU,
  ACTIVATION_GELU_TANH,
  ACTIVATION_HARD_SWISH,
  ACTIVATION_HARD_SIGMOID,
  ACTIVATION_MISH,
};

// Numbers of a call that the modes read.
struct ActivationNumbers {
  float slope, offset, low, high;
};

constexpr float SELU_SCALE = 1.0507009873554805f;            // of positive x
constexpr float SELU_SLOPE = 1.7580993408473766f;            // of exp(x) - 1
constexpr float GELU_LINEAR = 1.5957691216057308f;           // 2 sqrt(2 / pi)
constexpr float GELU_CUBIC = 0.071354816272600254f;          // that times 0.044715
constexpr float NORMAL_DENSITY_AT_0 = 0.39894228040143268f;  // 1 / sqrt(2 pi)

// min(max(v, low), high); NaN stays NaN.
__device__ __forceinline__ float clamped(float v, float low, float high) {
  v = v < low ? low : v;
  return v > high ? high : v;
}

// 1 / (1 + exp(-t)).
__device__ __forceinline__ float logistic(float t) {
  const float e = expf(-fabsf(t));
  return (t < 0.0f ? e : 1.0f) / (1.0f + e);
}

// Its derivative, also a quarter of the square of 1 / cosh(t / 2).
__device__ __forceinline__ float logistic_slope(float t) {
  const float e = expf(-fabsf(t));
  return e / ((1.0f + e) * (1.0f + e));
}

// x times something that vanishes, at last, faster than any x grows: the limit, 0, also where x is infinite.
__device__ __forceinline__ float gated(float x, float gate) {
  return gate == 0.0f ? 0.0f : x * gate;
}

// The argument of the logistic function in gelu_tanh: 2 sqrt(2 / pi) (x + 0.044715 x^3).
__device__ __forceinline__ float gelu_argument(float x) {
  return x * fmaf(GELU_CUBIC, x * x, GELU_LINEAR);
}

// tanh(log(1 + exp(x))) = n / (n + 2) with n = exp(x) (exp(x) + 2), scaled by exp(-2x) where x is positive.
__device__ __forceinline__ float mish_gate(float x) {
  const float e = expf(-fabsf(x));
  const float n = x < 0.0f ? e * (e + 2.0f) : fmaf(2.0f, e, 1.0f);
  return n / (n + (x < 0.0f ? 2.0f : 2.0f * e * e));
}

// Its derivative: 4 exp(x) (1 + exp(x)) / (n + 2)^2.
__device__ __forceinline__ float mish_gate_slope(float x) {
  const float e = expf(-fabsf(x));
  const float d = x < 0.0f ? fmaf(e, e + 2.0f, 2.0f) : fmaf(2.0f * e, e + 1.0f, 1.0f);
  return 4.0f * (1.0f + e) * (x < 0.0f ? e : e * e) / (d * d);
}

template <int MODE>
__device__ __forceinline__ float activated(float x, float slope, float offset, float low, float high) {
  if constexpr (MODE == ACTIVATION_IDENTITY) return x;
  if constexpr (MODE == ACTIVATION_RELU) return x < 0.0f ? 0.0f : x;
  if constexpr (MODE == ACTIVATION_CLIPPED_RELU) return clamped(x, 0.0f, high);
  if constexpr (MODE == ACTIVATION_CLIP) return clamped(x, low, high);
  if constexpr (MODE == ACTIVATION_LEAKY_RELU) return x < 0.0f ? slope * x : x;
  if constexpr (MODE == ACTIVATION_SIGMOID) return logistic(x);
  if constexpr (MODE == ACTIVATION_TANH) return tanhf(x);
  if constexpr (MODE == ACTIVATION_ELU) return x < 0.0f ? slope * expm1f(x) : x;
  if constexpr (MODE == ACTIVATION_SELU) return x < 0.0f ? SELU_SLOPE * expm1f(x) : SELU_SCALE * x;
  if constexpr (MODE == ACTIVATION_SOFTPLUS) {
    const float t = slope * x;
    return ((t < 0.0f ? 0.0f : t) + log1pf(expf(-fabsf(t)))) / slope;
  }
  if constexpr (MODE == ACTIVATION_SWISH) return gated(x, logistic(slope * x));
  if constexpr (MODE == ACTIVATION_GELU) return gated(x, normcdff(x));
  if constexpr (MODE == ACTIVATION_GELU_TANH) return gated(x, logistic(gelu_argument(x)));
  if constexpr (MODE == ACTIVATION_HARD_SWISH) return gated(x, clamped(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f));
  if constexpr (MODE == ACTIVATION_HARD_SIGMOID) return clamped(fmaf(slope, x, offset), 0.0f, 1.0f);
  return gated(x, mish_gate(x));  // ACTIVATION_MISH
}

// `inside` where the condition holds, `outside` where it does not, and NaN where v is.
__device__ __forceinline__ float piece(float v, bool condition, float inside, float outside) {
  return is_nan(v) ? v : condition ? inside : outside;
}

template <int MODE>
__device__ __forceinline__ float activation_slope(float x, float slope, float offset, float low, float high) {
  if constexpr (MODE == ACTIVATION_IDENTITY) return piece(x, true, 1.0f, 1.0f);
  if constexpr (MODE == ACTIVATION_RELU) return piece(x, x > 0.0f, 1.0f, 0.0f);
  if constexpr (MODE == ACTIVATION_CLIPPED_RELU) return piece(x, x > 0.0f && x < high, 1.0f, 0.0f);
  if constexpr (MODE == ACTIVATION_CLIP) return piece(x, x >= low && x <= high, 1.0f, 0.0f);
  if constexpr (MODE == ACTIVATION_LEAKY_RELU) return piece(x, x > 0.0f, 1.0f, slope);
  if constexpr (MODE == ACTIVATION_SIGMOID) return logistic_slope(x);
  if constexpr (MODE == ACTIVATION_TANH) return 4.0f * logistic_slope(2.0f * x);
  if constexpr (MODE == ACTIVATION_ELU) return x > 0.0f ? 1.0f : slope * expf(x);
  if constexpr (MODE == ACTIVATION_SELU) return x > 0.0f ? SELU_SCALE : SELU_SLOPE * expf(x);
  if constexpr (MODE == ACTIVATION_SOFTPLUS) return logistic(slope * x);
  if constexpr (MODE == ACTIVATION_SWISH) {
    const float t = slope * x;
    return logistic(t) + gated(t, logistic_slope(t));
  }
  if constexpr (MODE == ACTIVATION_GELU) {
    return normcdff(x) + gated(x, NORMAL_DENSITY_AT_0 * expf(-0.5f * x * x));
  }
  if constexpr (MODE == ACTIVATION_GELU_TANH) {
    const float t = gelu_argument(x);
    const float x_times_slope = gated(x * fmaf(3.0f * GELU_CUBIC, x * x, GELU_LINEAR), logistic_slope(t));
    return logistic(t) + x_times_slope;
  }
  if constexpr (MODE == ACTIVATION_HARD_SWISH) {
    return x < -3.0f ? 0.0f : x >= 3.0f ? 1.0f : fmaf(x, 1.0f / 3.0f, 0.5f);
  }
  if constexpr (MODE == ACTIVATION_HARD_SIGMOID) {
    const float t = fmaf(slope, x, offset);
    return piece(t, t > 0.0f && t < 1.0f, slope, 0.0f);
  }
  return mish_gate(x) + gated(x, mish_gate_slope(x));  // ACTIVATION_MISH
}

// The derivative at an x that is not known any more, of which y was made.
template <int MODE>
__device__ __forceinline__ float activation_slope_from_y(float y, float slope, float high) {
  if constexpr (MODE == ACTIVATION_IDENTITY) return piece(y, true, 1.0f, 1.0f);
  if constexpr (MODE == ACTIVATION_RELU) return piece(y, y > 0.0f, 1.0f, 0.0f);
  if constexpr (MODE == ACTIVATION_CLIPPED_RELU) return piece(y, y > 0.0f && y < high, 1.0f, 0.0f);
  if constexpr (MODE == ACTIVATION_LEAKY_RELU) return piece(y, y > 0.0f, 1.0f, slope);
  if constexpr (MODE == ACTIVATION_SIGMOID) return y * (1.0f - y);
  if constexpr (MODE == ACTIVATION_TANH) return (1.0f - y) * (1.0f + y);
  if constexpr (MODE == ACTIVATION_ELU) return y > 0.0f ? 1.0f : y + slope;
  if constexpr (MODE == ACTIVATION_SELU) return y > 0.0f ? SELU_SCALE : y + SELU_SLOPE;
  return -expm1f(-slope * y);  // ACTIVATION_SOFTPLUS
}

// Whether f is constant somewhere: there dx is 0 whatever dy is.
template <int MODE>
__host__ __device__ constexpr bool activation_is_flat_somewhere() {
  return MODE == ACTIVATION_RELU || MODE == ACTIVATION_CLIPPED_RELU || MODE == ACTIVATION_CLIP ||
         MODE == ACTIVATION_HARD_SWISH || MODE == ACTIVATION_HARD_SIGMOID;
}

template <int MODE>
__device__ __forceinline__ float activation_gradient(float derivative, float dy) {
  if constexpr (activation_is_flat_somewhere<MODE>()) {
    if (derivative == 0.0f) return 0.0f;
  }
  return derivative * dy;
}
