// y = alpha * value + beta * y, by the classes of alpha and beta: only what a class needs is computed or read.
//
// From the prelude: ALPHA and BETA, the classes of the result.

enum : int { SCALE_ZERO = 0, SCALE_ONE = 1, SCALE_ANY = 2 };

// alpha * value. Class zero gives 0 whatever the value, NaN included.
template <int ALPHA>
__device__ __forceinline__ float scaled(float value, float alpha) {
  if constexpr (ALPHA == SCALE_ZERO) return 0.0f;
  if constexpr (ALPHA == SCALE_ONE) return value;
  return alpha * value;
}

// alpha * value + beta * old. `old` is whatever for beta of class zero: the caller must not read y then.
template <int ALPHA, int BETA>
__device__ __forceinline__ float blended(float value, float alpha, float old, float beta) {
  const float result = scaled<ALPHA>(value, alpha);
  if constexpr (BETA == SCALE_ZERO) return result;
  if constexpr (BETA == SCALE_ONE) return result + old;
  return result + beta * old;
}

// alpha and beta of one output, with their classes.
template <int ALPHA_CLASS, int BETA_CLASS>
struct Scales {
  static constexpr bool READS = BETA_CLASS != SCALE_ZERO;  // what the output held
  float alpha, beta;

  __device__ __forceinline__ float of(float value, float old) const {
    return blended<ALPHA_CLASS, BETA_CLASS>(value, alpha, old, beta);
  }
  template <class T>
  __device__ __forceinline__ void store(T* target, float value) const {
    float old = 0.0f;
    if constexpr (READS) old = to_float(*target);
    *target = from_float<T>(of(value, old));
  }
};

using ResultScales = Scales<ALPHA, BETA>;
