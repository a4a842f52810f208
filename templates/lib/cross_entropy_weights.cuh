// The weights of classes that stand near each other, for kernels that take VECTOR neighbours of a row at a time.
//
// From the prelude, besides lib/cross_entropy.cuh and lib/rows.cuh: WEIGHTS_RUN, how many weights one access moves.
#include "lib/cross_entropy.cuh"
#include "lib/rows.cuh"

// Weights of the VECTOR classes from `first` on.
__device__ __forceinline__ Vector<float, VECTOR> weights_of(const float* weights, int first) {
  if constexpr (HAS_WEIGHTS) {
    return load_neighbours<WEIGHTS_RUN, WEIGHTS_STRIDE>(weights + static_cast<long long>(first) * WEIGHTS_STRIDE);
  } else {
    Vector<float, VECTOR> ones;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) ones[i] = 1.0f;
    return ones;
  }
}
