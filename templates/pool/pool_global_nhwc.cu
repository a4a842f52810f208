// Global pooling along the channels: y[n,c] = max or average over all pixels. Any strides; fast where channels stand
// side by side.
//
// A block takes LANES * VECTOR channels of an image: its ROWS rows of LANES threads share the pixels among them and
// meet in shared memory. VECTOR divides C; pixels are PIXEL_STEP apart if PIXELS_ARE_EVEN. Parameters:
// pool_global_nhwc.cpp.
#include "lib/pool_operands.cuh"
#include "lib/store.cuh"
#include "lib/vector.cuh"

constexpr int CHANNELS = LANES * VECTOR;  // of a block

extern "C" __global__ void __launch_bounds__(LANES* ROWS)
    pool_global_nhwc(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                     long long) {
  __shared__ float partial[ROWS][CHANNELS];
  const Index pixels = Index(D) * H * W, slices = ceil_div<int>(C, CHANNELS);
  const Index slice = static_cast<Index>(blockIdx.x) % slices;
  const Index image = static_cast<Index>(blockIdx.x) / slices;
  const int lane = static_cast<int>(threadIdx.x) % LANES;
  const int row = static_cast<int>(threadIdx.x) / LANES;
  const Index c = slice * CHANNELS + lane * VECTOR;

  float values[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) values[j] = pool_start<MODE>();
  if (c < C) {
    const TX* source = x + Input::at(image, c, 0, 0, 0);
#pragma unroll 4
    for (Index i = row; i < pixels; i += ROWS) {
      const Vector<TX, VECTOR> loaded =
          load_readonly<VECTOR>(source + (PIXELS_ARE_EVEN ? i * Index(PIXEL_STEP) : Input::of_place(i)));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        values[j] = pool_add<MODE>(values[j], user_entered(loaded[j], static_cast<int>(c) + j, user));
      }
    }
  }
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) partial[row][j * LANES + lane] = values[j];
  __syncthreads();

  // Channel j * LANES + lane of the block's shared memory is channel lane * VECTOR + j of its slice.
  for (int i = static_cast<int>(threadIdx.x); i < CHANNELS; i += LANES * ROWS) {
    const Index channel = slice * CHANNELS + i;
    if (channel >= C) break;
    const int column = i % VECTOR * LANES + i / VECTOR;
    float value = partial[0][column];
#pragma unroll
    for (int r = 1; r < ROWS; ++r) value = pool_add<MODE>(value, partial[r][column]);
    const float result[1] = {pool_finish<MODE>(value, static_cast<float>(pixels))};
    store_run<false>(y, Output::at(image, channel, 0, 0, 0), result, static_cast<int>(channel), {alpha, beta, user});
  }
}
