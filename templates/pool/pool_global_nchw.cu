// Global pooling along the pixels: y[n,c] = max or average of all elements of a channel. Any strides; fast where pixels
// stand side by side.
//
// LANES neighbouring threads reduce a channel: up to a warp, or the whole block. VECTOR divides a plane; its pixels are
// PIXEL_STEP apart if PIXELS_ARE_EVEN. Parameters: pool_global_nchw.cpp.
#include "lib/pool_operands.cuh"
#include "lib/reduce.cuh"
#include "lib/store.cuh"
#include "lib/vector.cuh"

constexpr int PLANES_PER_BLOCK = THREADS / LANES;
constexpr Index STEP = Index(LANES) * VECTOR;  // elements that the lanes of a plane take at a time

static_assert(LANES <= 32 || LANES == THREADS, "lanes of a plane are within a warp or are the whole block");

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_global_nchw(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                     long long n) {
  __shared__ float scratch[32];
  const Index plane_size = Index(D) * H * W;
  const Index planes = images_of(n) * Index(C);
  const Index plane = static_cast<Index>(blockIdx.x) * PLANES_PER_BLOCK + static_cast<Index>(threadIdx.x) / LANES;
  const Index lane = static_cast<Index>(threadIdx.x) % LANES;

  // One running value a vector element, so that neither loads nor additions wait for each other.
  float values[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) values[j] = pool_start<MODE>();
  if (plane < planes) {
    Index image = plane;
    const Index c = take_coordinate(image, C);
    const TX* source = x + Input::at(image, c, 0, 0, 0);
#pragma unroll 4
    for (Index i = lane * VECTOR; i < plane_size; i += STEP) {
      const Vector<TX, VECTOR> loaded =
          load_readonly<VECTOR>(source + (PIXELS_ARE_EVEN ? i * Index(PIXEL_STEP) : Input::of_place(i)));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        values[j] = pool_add<MODE>(values[j], user_entered(loaded[j], static_cast<int>(c), user));
    }
  }
#pragma unroll
  for (int j = 1; j < VECTOR; ++j) values[0] = pool_add<MODE>(values[0], values[j]);

  float value;
  if constexpr (LANES <= 32) {
    value = lanes_reduce<LANES>(values[0], PoolCombine<MODE>());
  } else {
    value = block_reduce<THREADS>(values[0], scratch, PoolCombine<MODE>());
  }
  if (lane != 0 || plane >= planes) return;
  Index image = plane;
  const Index c = take_coordinate(image, C);
  const float result[1] = {pool_finish<MODE>(value, static_cast<float>(plane_size))};
  store_run<false>(y, Output::at(image, c, 0, 0, 0), result, static_cast<int>(c), {alpha, beta, user});
}
