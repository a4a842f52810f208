// Storing what stands along rows: neighbours, STEP elements apart, in accesses of RUN (1 unless they are side by side),
// as they are or blended with what is there.
#include "lib/blend.cuh"
#include "lib/vector.cuh"

template <int RUN, const auto& STEP, class T, int COUNT, int ALPHA_CLASS = SCALE_ONE, int BETA_CLASS = SCALE_ZERO>
__device__ __forceinline__ void store_neighbours(T* first, const float (&values)[COUNT],
                                                 Scales<ALPHA_CLASS, BETA_CLASS> scales = {}) {
#pragma unroll
  for (int i = 0; i < COUNT; i += RUN) {
    T* const target = first + i * Index(STEP);
    Vector<T, RUN> run;
    if constexpr (scales.READS) run = load<RUN>(target);
#pragma unroll
    for (int j = 0; j < RUN; ++j) {
      float old = 0.0f;
      if constexpr (scales.READS) old = to_float(run[j]);
      run[j] = from_float<T>(scales.of(values[i + j], old));
    }
    store<RUN>(target, run);
  }
}

// Stores the first `left` of COUNT neighbours as they are, where there may be fewer.
template <int RUN, const auto& STEP, class T, int COUNT>
__device__ __forceinline__ void store_some_neighbours(T* first, int left, const float (&values)[COUNT]) {
  if (left >= COUNT) return store_neighbours<RUN, STEP>(first, values);
#pragma unroll
  for (int i = 0; i < COUNT - 1; ++i) {
    if (i < left) first[i * Index(STEP)] = from_float<T>(values[i]);
  }
}
