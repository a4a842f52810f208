// Gradient of a convolution by its filters, along the pixels, where a channel of x or of dy serves few others:
// depthwise convolutions, small groups, images of few channels. Any strides; fast where pixels of a row stand side by
// side.
//
// A filter here is one channel of one k: the sums of one channel of x with one of dy. LANES threads share it and a part
// of the tiles of TILE_P x TILE_Q outputs of all images. The sums of all taps stay in a thread's registers while it
// goes from tile to tile. It keeps dy of a tile and goes down the rows of x under it (lib/depthwise_segments.cuh):
// every element of either is converted once and serves all taps that bring them together. Then the threads of a filter
// add up, and with SPLIT > 1 parts a second kernel adds those. Every order of addition is fixed.
//
// From the prelude, besides the problem: TILE_P, TILE_Q, LANES, X_RUN and DY_RUN, the elements of an access, THREADS
// and SPLIT (conv_backward_filter_depthwise_nchw.cpp).
#include "lib/depthwise_gradient.cuh"
#include "lib/depthwise_segments.cuh"
#include "lib/reduce.cuh"

constexpr int BLOCK_FILTERS = THREADS / LANES;
constexpr int WARPS_OF_FILTER = ceil_div(LANES, 32);

static_assert(THREADS % LANES == 0 && (LANES & (LANES - 1)) == 0, "threads share filters evenly");
static_assert(TILE_Q % DY_RUN == 0, "an access of dy stays in its tile");

using Sums = float[T][R][S];
using TileOfGradients = float[TILE_P][TILE_Q];

__device__ __forceinline__ void load_gradients(const TDY* first, const Existing& existing, TileOfGradients& gradients) {
#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
#pragma unroll
    for (int q = 0; q < TILE_Q; q += DY_RUN) {
      float run[DY_RUN];
      to_floats(load_readonly_if<DY_RUN>(existing.has(p, q), first + (p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q))),
                run);
#pragma unroll
      for (int i = 0; i < DY_RUN; ++i) gradients[p][q + i] = run[i];
    }
  }
}

// sums += the products of row number `row` of the tile, on plane `t` of its windows. An output that does not exist is
// left out: its zero times an infinity would not be zero.
__device__ __forceinline__ void multiply(const Segment& segment, int t, int row, const Existing& existing,
                                         const TileOfGradients& gradients, Sums& sums) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int down = row - r * DILATION_H;
    if (down < 0 || down % STRIDE_H != 0 || down / STRIDE_H >= TILE_P) continue;
#pragma unroll
    for (int s = 0; s < S; ++s) {
#pragma unroll
      for (int q = 0; q < TILE_Q; ++q) {
        const float value = segment.values[SHIFT + q * STRIDE_W + s * DILATION_W];
        const int p = down / STRIDE_H;
        if (existing.has(p, q)) sums[t][r][s] = fmaf(value, gradients[p][q], sums[t][r][s]);
      }
    }
  }
}

// Adds what tile number `tile` of all images brings to a filter.
__device__ __forceinline__ void add_tile(const TX* x, const TDY* dy, Index tile, int filter, const UserArguments& user,
                                         Sums& sums) {
  const int k = filter / C_PER_GROUP, channel = k / K_PER_GROUP * C_PER_GROUP + filter % C_PER_GROUP;
  const TilePlace at(tile);
  const Existing existing(at.first_p, at.first_q);
  TileOfGradients gradients;
  load_gradients(dy + Output::at(at.image, k, at.z, at.first_p, at.first_q), existing, gradients);
#pragma unroll
  for (int t = 0; t < T; ++t) {
    const Index d = at.front + Index(t) * DILATION_D;
    if (static_cast<UnsignedIndex>(d) >= UnsignedIndex(D)) continue;
    const TX* const plane = x + Input::at(at.image, channel, d, 0, 0);
#pragma unroll
    for (int row = 0; row < input_rows(R); ++row) {
      if (!meets<TILE_P, STRIDE_H, DILATION_H, R>(row)) continue;
      const Index h = at.top + row;
      const Segment segment(plane + h * Index(X_STRIDE_H), at.left - SHIFT,
                            static_cast<UnsignedIndex>(h) < UnsignedIndex(H), channel, user);
      multiply(segment, t, row, existing, gradients, sums);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_filter_depthwise_nchw(const TX* __restrict__ x, const TDY* __restrict__ dy, TDW* dw,
                                        float* __restrict__ parts, float alpha, float beta, UserArguments user,
                                        long long n) {
  __shared__ float of_warps[TAPS][BLOCK_FILTERS][WARPS_OF_FILTER];
  const int lane = static_cast<int>(threadIdx.x) % LANES, filter_in_block = static_cast<int>(threadIdx.x) / LANES;
  const int first_filter = static_cast<int>(blockIdx.x) * BLOCK_FILTERS, part = static_cast<int>(blockIdx.y);

  Sums sums = {};
  if (first_filter + filter_in_block < filters()) {
    const TilesOfPart<LANES> tiles(part, images_of(n) * (Index(Z) * p_tiles() * q_tiles()));
#pragma unroll 1
    for (Index tile = tiles.first + lane; tile < tiles.end; tile += LANES) {
      add_tile(x, dy, tile, first_filter + filter_in_block, user, sums);
    }
  }

#pragma unroll
  for (int tap = 0; tap < TAPS; ++tap) {
    const float sum = lanes_reduce<smaller(LANES, 32)>(sums[tap / (R * S)][tap / S % R][tap % S], Sum());
    if (lane % 32 == 0) of_warps[tap][filter_in_block][lane / 32] = sum;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < TAPS * BLOCK_FILTERS; i += THREADS) {
    const int tap = i % TAPS, filter = i / TAPS;
    if (first_filter + filter >= filters()) break;
    float sum = of_warps[tap][filter][0];
#pragma unroll
    for (int warp = 1; warp < WARPS_OF_FILTER; ++warp) sum += of_warps[tap][filter][warp];
    leave_sum<false>(dw, parts, part, first_filter + filter, tap, sum, {alpha, beta, user});
  }
}

extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_depthwise_nchw_reduce(const float* __restrict__ parts, TDW* dw, float alpha, float beta,
                                               UserArguments user) {
  add_parts<false>(parts, dw, {alpha, beta, user});
}
