// Parts shared by the bias gradients: dy in memory, and how a channel's sum ends.
//
// From the prelude: TDY, TDB, N, DYNAMIC_N, K, Z, P, Q, the strides of dy, DB_STRIDE, ALPHA and BETA.
#include "lib/images.cuh"
#include "lib/store.cuh"
#include "lib/strided.cuh"

using Gradient = SpatialTensor<DY_STRIDE_N, DY_STRIDE_K, DY_STRIDE_Z, DY_STRIDE_P, DY_STRIDE_Q, N, Z, P, Q>;

// Pixels of all images of this call.
__device__ __forceinline__ Index pixels_of(long long n) {
  return images_of(n) * (Index(Z) * P * Q);
}

// db[channel] from its sum.
__device__ __forceinline__ void finish_channel(TDB* db, Index channel, float sum, const OutputArguments& output) {
  store_result(db, channel * Index(DB_STRIDE), sum, 0, output);
}
