// Gradient of a local convolution by its input, through columns: what every output sends back to the elements under its
// window, one column for each element of a filter.
//
// columns[n,z,p,q][group][element of a filter, in the order of memory] = sum over k of the group of dy[n,k,z,p,q] *
// w[region*K + k][element]: for each region a matrix product that reads its filters once, in the order in which they
// stand in memory, as a 1x1 convolution of dy (lib/conv_tile.cuh). Then every element of dx adds up the columns that
// are for it, in a fixed order.
//
// From the prelude: that convolution, whose x is dy and whose y are the columns, f32 without gaps, while TY, residual
// and stages are those of dx; the extents of dx, its window and steps, and where a tap's column stands. Parameters:
// local_conv_backward_data_columns.cpp.
#include "lib/gemm_tile.cuh"
#include "lib/im2col_pixels.cuh"
#include "lib/window_outputs.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for local_conv_backward_data_simple");
static_assert(TAPS == 1, "each output makes its columns alone");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    local_conv_backward_data_columns(const TX* __restrict__ dy, const TW* __restrict__ w, float* __restrict__ columns,
                                     UserArguments user, long long n) {
  const BlockTile tile(GridBlock(), n);
  const F32Lanes::Position position;
  F32Lanes::Sums sums;
  convolve_tile<F32Lanes, Im2colPixels, Filters<BlockTile>>(dy, w, user, tile, 0, chunks_of_filter(), position, sums);
  for_each_output_run<OutputPixel>(tile, position, sums,
                                   [&](OutputPixel pixel, int column, const float(&values)[Y_RUN]) {
                                     pixel.move_into(tile.region);
                                     Vector<float, Y_RUN> run;
#pragma unroll
                                     for (int i = 0; i < Y_RUN; ++i) run[i] = values[i];
                                     store<Y_RUN>(columns + (pixel.y + column * Index(Y_STRIDE_K)), run);
                                   });
}

// The sum of the columns for one element of dx. `columns`: those of its image and group for its channel.
__device__ __forceinline__ float gather(const float* columns, Index d, Index h, Index column) {
  float sum = 0.0f;
  for (int t = 0; t < WINDOW_T; ++t) {
    const Index z = output_of(d, t, DX_PAD_FRONT, DX_STEP_D, DX_DILATION_D, OUTPUTS_Z);
    if (z < 0) continue;
    for (int r = 0; r < WINDOW_R; ++r) {
      const Index p = output_of(h, r, DX_PAD_TOP, DX_STEP_H, DX_DILATION_H, OUTPUTS_P);
      if (p < 0) continue;
      for (int s = 0; s < WINDOW_S; ++s) {
        const Index q = output_of(column, s, DX_PAD_LEFT, DX_STEP_W, DX_DILATION_W, OUTPUTS_Q);
        if (q < 0) continue;
        const Index filter_t = DX_MIRRORED ? WINDOW_T - 1 - t : t;
        const Index filter_r = DX_MIRRORED ? WINDOW_R - 1 - r : r;
        const Index filter_s = DX_MIRRORED ? WINDOW_S - 1 - s : s;
        sum += columns[Output::at(0, 0, z, p, q) + filter_t * Index(COLUMN_STRIDE_T) +
                       filter_r * Index(COLUMN_STRIDE_R) + filter_s * Index(COLUMN_STRIDE_S)];
      }
    }
  }
  return sum;
}

// dx from the columns; a thread an element, neighbours along what is closest in the columns and in dx.
extern "C" __global__ void __launch_bounds__(GATHER_THREADS)
    local_conv_backward_data_columns_gather(const float* __restrict__ columns, TY* dx, const TBias* bias,
                                            const TResidual* residual, float alpha, float beta, float clip_lo,
                                            float clip_hi, UserArguments user, long long n) {
  Index image = global_thread<GATHER_THREADS, Index>();
  if (image >= images_of(n) * Index(DX_C) * DX_D * DX_H * DX_W) return;
  Index channel = 0;
  if constexpr (DX_ALONG_C) channel = take_coordinate(image, DX_C);
  const Index column = take_coordinate(image, DX_W);
  const Index h = take_coordinate(image, DX_H);
  const Index d = take_coordinate(image, DX_D);
  if constexpr (!DX_ALONG_C) channel = take_coordinate(image, DX_C);

  Index c = channel;
  const Index in_group = take_coordinate(c, DX_C_PER_GROUP);  // leaves the group
  const Index first = Output::at(image, c * K_PER_GROUP + in_group * Index(COLUMN_STRIDE_C), 0, 0, 0);
  const float sum = gather(columns + first, d, h, column);

  const Index at = image * Index(DX_STRIDE_N) + channel * Index(DX_STRIDE_C) + d * Index(DX_STRIDE_D) +
                   h * Index(DX_STRIDE_H) + column * Index(DX_STRIDE_W);
  const float sums[] = {sum};
  finish_run<false>(dx, at, Residual::at(image, channel, d, h, column), sums, static_cast<int>(channel),
                    {bias, residual, alpha, beta, clip_lo, clip_hi, user});
}
