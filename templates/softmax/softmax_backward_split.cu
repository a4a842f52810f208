// The gradient of softmax or log-softmax of few long rows, in any layout: SPLITS blocks share a row, in two kernels.
//
// The first leaves the sum of every part of a row in the workspace, parts[row][split]; the second adds those of its
// row, always in the same order, and makes its part of the result. dx may be y or dy itself: a thread of the second
// writes the elements that it alone has read. Parameters: softmax_backward_split.cpp.
#include "lib/reduce.cuh"
#include "lib/row_parts.cuh"
#include "lib/softmax_gradient.cuh"

static_assert(SPLITS <= THREADS, "each sum of a part is read by a thread of its own");

__device__ __forceinline__ float sum_of_block(float value) {
  __shared__ float scratch[32];
  return block_reduce<THREADS>(value, scratch, Sum());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_backward_split_sums(const TY* y, const TDY* dy, UserArguments user, float* parts) {
  const Part part = part_of_block();
  y += row_offset<Y_OUTER_STRIDES>(part.row) + part.begin * Index(Y_STEP);
  dy += row_offset<DY_OUTER_STRIDES>(part.row) + part.begin * Index(DY_STEP);
  float sum = 0.0f;
#pragma unroll 4
  for (Index i = Index(threadIdx.x) * VECTOR; i < part.length; i += THREADS * VECTOR) {
    Neighbours neighbours;
    neighbours.load(y + i * Index(Y_STEP), dy + i * Index(DY_STEP), user);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sum += neighbours.term(j);
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_backward_split_gradients(const TY* y, const TDY* dy, TDX* dx, float alpha, float beta, UserArguments user,
                                     const float* parts) {
  const Part part = part_of_block();
  const int split = static_cast<int>(threadIdx.x);
  const float sum = sum_of_block(split < SPLITS ? parts[part.row * SPLITS + split] : 0.0f);
  y += row_offset<Y_OUTER_STRIDES>(part.row) + part.begin * Index(Y_STEP);
  dy += row_offset<DY_OUTER_STRIDES>(part.row) + part.begin * Index(DY_STEP);
  const Index first_dx = row_offset<DX_OUTER_STRIDES>(part.row) + part.begin * Index(DX_STEP);
#pragma unroll 4
  for (Index i = Index(threadIdx.x) * VECTOR; i < part.length; i += THREADS * VECTOR) {
    Neighbours neighbours;
    neighbours.load(y + i * Index(Y_STEP), dy + i * Index(DY_STEP), user);
    float gradients[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) gradients[j] = neighbours.gradient(j, sum);
    store_along<DX_RUN, DX_STEP>(dx, first_dx + i * Index(DX_STEP), gradients, {alpha, beta, user});
  }
}
