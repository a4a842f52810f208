// Convolution with a 1x1 filter, unit stride and no padding: a plain matrix product per group, y = w x. Packed nchw:
// or nhwc. lib/conv_tile.cuh and lib/pointwise_pixels.cuh say how. Parameters: conv_1x1.cpp.
#include "lib/epilogue.cuh"
#include "lib/pointwise_pixels.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");
static_assert(POINTWISE, "one tap, at every pixel");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_1x1(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias, const TResidual* residual,
             float alpha, float beta, float clip_lo, float clip_hi, long long n) {
  const BlockTile tile(n);
  const TilePosition position;
  float sums[THREAD_M][THREAD_N];
  convolve_tile<PointwisePixels>(x, w, tile, 0, CHUNKS, position, sums);

  const EpilogueArguments arguments{bias, residual, alpha, beta, clip_lo, clip_hi};
  for_each_output_run(tile, position, sums, [&](Index offset, const float(&values)[Y_RUN], int channel) {
    finish_run<NHWC>(y, offset, values, channel, arguments);
  });
}
