// Storing what stands along rows: VECTOR neighbours, STEP elements apart, in accesses of RUN, blended with what is
// there.
#include "lib/blend.cuh"
#include "lib/vector.cuh"

template <int RUN, long long STEP, class T, int COUNT>
__device__ __forceinline__ void store_neighbours(T* first, const float (&values)[COUNT], float alpha, float beta) {
  static_assert(RUN == 1 || STEP == 1, "an access moves what is side by side");
#pragma unroll
  for (int i = 0; i < COUNT; i += RUN) {
    T* const target = first + i * Index(STEP);
    Vector<T, RUN> run;
    if constexpr (BETA != SCALE_ZERO) run = load<RUN>(target);
#pragma unroll
    for (int j = 0; j < RUN; ++j) {
      float old = 0.0f;
      if constexpr (BETA != SCALE_ZERO) old = to_float(run[j]);
      run[j] = from_float<T>(blended<ALPHA, BETA>(values[i + j], alpha, old, beta));
    }
    store<RUN>(target, run);
  }
}
