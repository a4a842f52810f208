// y[n,c,z,p,q] = max of x over a window, and where it stands in its channel: a thread takes one output, for VECTOR
// channels. Any strides. Parameters: pool_indexed.cpp.
#include "lib/pooling.cuh"
#include "lib/store.cuh"
#include "lib/window_maxima.cuh"

using Output = SpatialTensor<Y_STRIDE_N, Y_STRIDE_C, Y_STRIDE_Z, Y_STRIDE_P, Y_STRIDE_Q, N, Z, P, Q>;
using Named =
    SpatialTensor<INDICES_STRIDE_N, INDICES_STRIDE_C, INDICES_STRIDE_Z, INDICES_STRIDE_P, INDICES_STRIDE_Q, N, Z, P, Q>;

// Where an element stands in its channel.
struct PositionOf {
  __device__ __forceinline__ int operator()(int, int, int, Index d, Index h, Index w) const {
    return static_cast<int>((d * H + h) * W + w);
  }
};

struct AfterPrologue {
  const UserArguments& user;

  __device__ __forceinline__ auto operator()(const Vector<TX, VECTOR>& x, Index channel) const {
    return user_kept<true>(x, static_cast<int>(channel), user);
  }
};

static_assert(MODE == POOL_MAX && HAS_INDICES, "other kernels serve other requests");

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_indexed(const TX* __restrict__ x, TY* __restrict__ y, int* __restrict__ indices, float alpha, float beta,
                 UserArguments user, long long n) {
  const Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(Z) * P * Q * (C / VECTOR)) return;
  const Place window = place_of(index, Z, P, Q);
  float largest[VECTOR];
  Vector<int, VECTOR> positions;
  window_maxima<-1>(x, window, AfterPrologue{user}, PositionOf(), largest, positions);

  store_run<true>(y, Output::at(window.image, window.c, window.plane, window.row, window.column), largest,
                  static_cast<int>(window.c), {alpha, beta, user});
  store(indices + Named::at(window.image, window.c, window.plane, window.row, window.column), positions);
}
