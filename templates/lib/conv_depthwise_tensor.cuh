// Depthwise convolution of f16 and bf16 on tensor cores, for windows of many taps: stride 1, a filter for each channel.
// A row of a filter is a band (lib/bands.cuh). A block has CHANNELS channels of a tile of outputs. x is turned on its
// way: it comes with channels side by side and stands in shared memory channel by channel; sums go back through shared
// memory.
//
// From the prelude, besides the problem: CHANNELS; TILE_P and TILE_Q, the outputs of a tile; WARP_P, the rows of
// outputs of a warp; X_RUN and Y_RUN, channels of an access to x and y; SHARED_BYTES; THREADS.
#include "lib/bands.cuh"
#include "lib/block_memory.cuh"
#include "lib/conv_operands.cuh"
#include "lib/depthwise_tiles.cuh"

static_assert(T == 1 && STRIDE_H == 1 && STRIDE_W == 1 && (DILATION_W == 1 || S == 1), "taps of a row are neighbours");
static_assert(K == C && sizeof(TW) == 2, "a filter for each channel, of 16 bits");

using FilterBands = Bands<R, S, DILATION_H, TILE_P, TILE_Q, 1, WARP_P>;

// The shared memory of a block: operands, and afterwards the sums, pixel by pixel.
union BandMemory {
  FilterBands::Operands operands;
  float sums[TILE_P][TILE_Q * (CHANNELS + 1) + 1];  // lanes that store meet in few banks
};

// The bits of tap s of row r of a channel's filter; zero beside the row.
__device__ __forceinline__ unsigned tap_of(const TW* w, int channel, int r, int s) {
  const bool exists = s >= 0 && s < S && channel < C;
  const int row = MIRRORED ? R - 1 - r : r, column = MIRRORED ? S - 1 - s : s;
  const auto* const taps = reinterpret_cast<const unsigned short*>(w + first_filter_element(channel));
  return load_readonly_if<1>(exists, taps + filter_offset(row * S + column))[0];
}

__device__ __forceinline__ void fill_filters(FilterBands::Operands& operands, const TW* w, int first) {
  constexpr int LINE = FilterBands::LINE;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < CHANNELS * R * LINE; i += THREADS) {
    const int word = i % LINE, r = i / LINE % R, channel = i / LINE / R, s = 2 * (word - FilterBands::AHEAD);
    operands.taps[channel][r][word] = tap_of(w, first + channel, r, s) | tap_of(w, first + channel, r, s + 1) << 16;
  }
}

__device__ __forceinline__ void convolve_bands(const GridBlock& block, const TX* x, const TW* w, TY* y,
                                               const EpilogueArguments& arguments, long long n) {
  static_assert(sizeof(BandMemory) <= SHARED_BYTES, "the launch asks for as much as operands and sums take");
  auto& memory = block_memory<BandMemory>();
  const int first_k = static_cast<int>(block.y) * CHANNELS;
  Index image = static_cast<Index>(block.x);
  const Index first_q = take_coordinate(image, q_tiles()) * TILE_Q;
  const Index first_p = take_coordinate(image, p_tiles()) * TILE_P;
  const Index z = take_coordinate(image, Z);
  if (image >= images_of(n)) return;
  const FilterBands bands;
  FilterBands::Sums sums = {};
  if constexpr (MULTIPLIES) {
    fill_filters(memory.operands, w, first_k);
    const bool finite = FilterBands::fill_input<Input>(memory.operands, x, image, first_k, z * STRIDE_D - PAD_FRONT,
                                                       first_p - PAD_TOP, first_q - PAD_LEFT);
    bands.add(memory.operands, finite, R, S, sums);
    __syncthreads();  // all have read the operands
  }
  bands.for_each_sum(
      sums, [&](int row, int column, float sum) { memory.sums[row][column * (CHANNELS + 1) + bands.channel] = sum; });
  __syncthreads();
  constexpr int RUNS = CHANNELS / Y_RUN;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < TILE_P * TILE_Q * RUNS; i += THREADS) {
    const int in_block = i % RUNS * Y_RUN, column = i / RUNS % TILE_Q, row = i / RUNS / TILE_Q;
    const int k = first_k + in_block;
    const Index p = first_p + row, q = first_q + column;
    if (p >= P || q >= Q || k >= K) continue;
    float run[Y_RUN];
#pragma unroll
    for (int j = 0; j < Y_RUN; ++j) run[j] = memory.sums[row][column * (CHANNELS + 1) + in_block + j];
    finish_outputs<true>(y, OutputPixel(image, z, p, q), k, run, arguments);
  }
}
