// dx[n,c,z,p,q] = dy at the position that indices[n,c,z,p,q] names, 0 where that is none of the output's window, the
// plain way: one thread an output, any strides. The trusted kernel of max unpooling's gradient.
#include "lib/index.cuh"
#include "lib/store.cuh"
#include "lib/strided.cuh"
#include "lib/unpool.cuh"

using Outgoing = SpatialTensor<DX_STRIDE_N, DX_STRIDE_C, DX_STRIDE_Z, DX_STRIDE_P, DX_STRIDE_Q, N, Z, P, Q>;
using Named =
    SpatialTensor<INDICES_STRIDE_N, INDICES_STRIDE_C, INDICES_STRIDE_Z, INDICES_STRIDE_P, INDICES_STRIDE_Q, N, Z, P, Q>;

extern "C" __global__ void __launch_bounds__(THREADS)
    unpool_backward_simple(const TDY* dy, const int* indices, TDX* dx, float alpha, float beta, UserArguments user,
                           long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= (DYNAMIC_N ? static_cast<Index>(n) : N) * Index(C) * Z * P * Q) return;
  const Index q = take_coordinate(index, Q);
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);
  const Index c = take_coordinate(index, C);
  const Index image = index;

  const Index offset = named_offset(indices[Named::at(image, c, z, p, q)], z, p, q);
  float value = 0.0f;
  if (offset >= 0) {
    const TDY* const channel = dy + Incoming::at(image, c, 0, 0, 0);
    value = user_entered(channel[offset], static_cast<int>(c), user);
  }
  store_element(dx + Outgoing::at(image, c, z, p, q), number, value, static_cast<int>(c), {alpha, beta, user});
}
