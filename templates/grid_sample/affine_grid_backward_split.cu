// The gradient of affine_grid by whole blocks: SPLIT blocks share the pixels of an image, a thread has a sum for each
// element of the matrix. With SPLIT > 1 a second kernel adds the parts in order. Every order of addition is fixed.
// Parameters: affine_grid_backward_split.cpp.
//
// parts: [image][SPLIT][ELEMENTS] f32.
#include "lib/affine_grid.cuh"
#include "lib/reduce.cuh"
#include "lib/store.cuh"

constexpr int ELEMENTS = AXES * (AXES + 1), WARPS = THREADS / 32;  // of a matrix

__device__ __forceinline__ void finish_element(TTHETA* dtheta, Index image, int element, float sum,
                                               const OutputArguments& output) {
  const Index i = element / (AXES + 1), j = element % (AXES + 1);
  store_result(dtheta, image * Index(THETA_STRIDE_N) + i * Index(THETA_STRIDE_I) + j * Index(THETA_STRIDE_J), sum, 0,
               output);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    affine_grid_backward_split(const TGRID* __restrict__ dgrid, TTHETA* dtheta, float* __restrict__ parts, float alpha,
                               float beta, UserArguments user, long long n) {
  __shared__ float shared[WARPS][ELEMENTS];
  const int thread = static_cast<int>(threadIdx.x);
  Index image = static_cast<Index>(blockIdx.x);
  const Index part = take_coordinate(image, SPLIT);
  float sums[ELEMENTS];
#pragma unroll
  for (int i = 0; i < ELEMENTS; ++i) sums[i] = 0.0f;
#pragma unroll 4
  for (Index place = part * THREADS + thread; place < Index(PIXELS); place += SPLIT * THREADS) {
    const GridPixel pixel(image * Index(PIXELS) + place);
    const GridFactors factors(pixel);
    const TGRID* const gradients = dgrid + pixel.offset_in_grid();
#pragma unroll
    for (int i = 0; i < AXES; ++i) {
      const float gradient = to_float(gradients[i * Index(GRID_STRIDE_E)]);
#pragma unroll
      for (int j = 0; j <= AXES; ++j) sums[i * (AXES + 1) + j] += gradient * factors[j];
    }
  }
#pragma unroll
  for (int i = 0; i < ELEMENTS; ++i) {
    const float sum = lanes_reduce<32>(sums[i], Sum());
    if (thread % 32 == 0) shared[thread / 32][i] = sum;
  }
  __syncthreads();
  if (thread >= ELEMENTS) return;
  float sum = shared[0][thread];
#pragma unroll
  for (int i = 1; i < WARPS; ++i) sum += shared[i][thread];
  if (SPLIT == 1) {
    finish_element(dtheta, image, thread, sum, {alpha, beta, user});
  } else {
    parts[static_cast<Index>(blockIdx.x) * ELEMENTS + thread] = sum;
  }
}

// dtheta from the parts; a thread an element.
extern "C" __global__ void __launch_bounds__(THREADS)
    affine_grid_backward_split_sum(const float* __restrict__ parts, TTHETA* dtheta, float alpha, float beta,
                                   UserArguments user, long long n) {
  Index image = global_thread<THREADS, Index>();
  const int element = static_cast<int>(take_coordinate(image, Index(ELEMENTS)));
  if (image >= images_of(n)) return;
  float sum = 0.0f;
#pragma unroll 4
  for (int part = 0; part < SPLIT; ++part) sum += parts[(image * SPLIT + part) * ELEMENTS + element];
  finish_element(dtheta, image, element, sum, {alpha, beta, user});
}
