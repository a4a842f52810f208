// y = alpha * value + beta * y, by the classes of alpha and beta: only what a class needs is computed or read.

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
