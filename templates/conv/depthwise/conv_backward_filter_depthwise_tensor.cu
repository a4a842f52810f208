// Gradient of a depthwise convolution by its filters on tensor cores, for windows of many taps: f16 and bf16, columns
// with stride 1. The gradient is the correlation of x with dy, so rows of dy are bands (lib/bands.cuh), and taps of the
// filter are the sums.
//
// A block has CHANNELS channels and its part of the tiles of TILE_P x TILE_Q outputs of all images; its sums stay in
// registers while it goes from tile to tile. With SPLIT > 1 parts a second kernel adds those. Every order of addition
// is fixed.
//
// From the prelude, besides the problem: CHANNELS, TILE_P, TILE_Q; WARP_R, the rows of taps of a warp; X_RUN and
// DY_RUN, channels of an access to x and dy; SHARED_BYTES; THREADS; SPLIT (conv_backward_filter_depthwise_tensor.cpp).
#include "lib/bands.cuh"
#include "lib/block_memory.cuh"
#include "lib/depthwise_gradient.cuh"

constexpr int ROWS_OF_SUMS = ceil_div(R, 16) * 16, COLUMNS_OF_SUMS = ceil_div(S, 8) * 8;
using GradientBands = Bands<TILE_P, TILE_Q, STRIDE_H, ROWS_OF_SUMS, COLUMNS_OF_SUMS, DILATION_H, WARP_R>;

static_assert(T == 1 && STRIDE_W == 1 && (DILATION_W == 1 || S == 1), "taps of a row are neighbours");
static_assert(C_PER_GROUP == 1 && sizeof(TDY) == 2, "a filter for each channel, of 16 bits");
static_assert(sizeof(GradientBands::Operands) <= SHARED_BYTES, "the launch asks for as much as operands take");

// The rows of dy of a tile, as taps; zeros beside them and where there are no outputs.
__device__ __forceinline__ void fill_gradients(GradientBands::Operands& operands, const TDY* dy, const TilePlace& place,
                                               int first) {
  constexpr int VECTORS = CHANNELS / DY_RUN, LINE = GradientBands::LINE;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < VECTORS * LINE * TILE_P; i += THREADS) {
    const int in_block = i % VECTORS * DY_RUN, word = i / VECTORS % LINE, row = i / VECTORS / LINE;
    const int column = 2 * (word - GradientBands::AHEAD);
    const Index p = place.first_p + row, q = place.first_q + column;
    const bool exists = p < P && first + in_block < K && column >= 0 && column < TILE_Q;
    for_each_pair<DY_RUN>(dy + Output::at(place.image, first + in_block, place.z, p, q), Index(DY_STRIDE_Q),
                          exists && q < Q, exists && column + 1 < TILE_Q && q + 1 < Q,
                          [&](int c, unsigned pair) { operands.taps[in_block + c][row][word] = pair; });
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_filter_depthwise_tensor(const TX* __restrict__ x, const TDY* __restrict__ dy, TDW* dw,
                                          float* __restrict__ parts, float alpha, float beta, UserArguments user,
                                          long long n) {
  auto& operands = block_memory<GradientBands::Operands>();
  const int first = static_cast<int>(blockIdx.x) * CHANNELS, part = static_cast<int>(blockIdx.y);
  const GradientBands bands;
  GradientBands::Sums sums = {};
  const TilesOfPart<1> tiles(part, images_of(n) * (Index(Z) * p_tiles() * q_tiles()));
#pragma unroll 1
  for (Index tile = tiles.first; tile < tiles.end; ++tile) {
    const TilePlace place(tile);
    if (tile != tiles.first) __syncthreads();  // all have read the operands of the tile before
    fill_gradients(operands, dy, place, first);
    const bool finite =
        GradientBands::fill_input<Input>(operands, x, place.image, first, place.front, place.top, place.left);
    bands.add(operands, finite, static_cast<int>(smaller<Index>(TILE_P, P - place.first_p)),
              static_cast<int>(smaller<Index>(TILE_Q, Q - place.first_q)), sums);
  }
  bands.for_each_sum(sums, [&](int r, int s, float sum) {
    const int k = first + bands.channel;
    if (r < R && s < S && k < K) leave_sum<true>(dw, parts, part, k, r * S + s, sum, {alpha, beta, user});
  });
}

extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_depthwise_tensor_reduce(const float* __restrict__ parts, TDW* dw, float alpha, float beta,
                                                 UserArguments user) {
  add_parts<true>(parts, dw, {alpha, beta, user});
}
