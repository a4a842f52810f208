// Storing neighbouring results, blended with what is there.
#include "lib/blend.cuh"
#include "lib/vector.cuh"

template <int ALPHA_CLASS, int BETA_CLASS, class T, int COUNT>
__device__ __forceinline__ void store_blended(T* target, const float (&values)[COUNT], float alpha, float beta) {
  Vector<T, COUNT> result;
  if constexpr (BETA_CLASS != SCALE_ZERO) result = load<COUNT>(target);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    float old = 0.0f;
    if constexpr (BETA_CLASS != SCALE_ZERO) old = to_float(result[i]);
    result[i] = from_float<T>(blended<ALPHA_CLASS, BETA_CLASS>(values[i], alpha, old, beta));
  }
  store(target, result);
}
