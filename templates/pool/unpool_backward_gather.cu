// dx[n,c,z,p,q] = dy at the position that indices[n,c,z,p,q] names: a thread takes one output, for VECTOR channels. Any
// strides.
//
// Neighbouring threads take neighbouring channels of dx if CHANNELS_INNER, else neighbouring pixels, so that a warp
// moves whole lines of indices and dx. Parameters: unpool_backward_gather.cpp.
#include "lib/places.cuh"
#include "lib/store.cuh"
#include "lib/strided.cuh"
#include "lib/unpool.cuh"
#include "lib/vector.cuh"

using Outgoing = SpatialTensor<DX_STRIDE_N, DX_STRIDE_C, DX_STRIDE_Z, DX_STRIDE_P, DX_STRIDE_Q, N, Z, P, Q>;
using Named =
    SpatialTensor<INDICES_STRIDE_N, INDICES_STRIDE_C, INDICES_STRIDE_Z, INDICES_STRIDE_P, INDICES_STRIDE_Q, N, Z, P, Q>;

extern "C" __global__ void __launch_bounds__(THREADS)
    unpool_backward_gather(const TDY* __restrict__ dy, const int* __restrict__ indices, TDX* __restrict__ dx,
                           float alpha, float beta, UserArguments user, long long n) {
  const Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(Z) * P * Q * (C / VECTOR)) return;
  const Place place = place_of(index, Z, P, Q);
  const Vector<int, VECTOR> named =
      load_readonly<VECTOR>(indices + Named::at(place.image, place.c, place.plane, place.row, place.column));
  const TDY* const channel = dy + Incoming::at(place.image, place.c, 0, 0, 0);
  float values[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    const Index offset = named_offset(named[j], place.plane, place.row, place.column);
    values[j] = 0.0f;
    if (offset >= 0) {
      values[j] = user_entered(channel[j * Index(DY_STRIDE_C) + offset], static_cast<int>(place.c) + j, user);
    }
  }
  store_run<true>(dx, Outgoing::at(place.image, place.c, place.plane, place.row, place.column), values,
                  static_cast<int>(place.c), {alpha, beta, user});
}
