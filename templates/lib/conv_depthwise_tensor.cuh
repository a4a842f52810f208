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

constexpr int P_TILES = ceil_div(P, TILE_P), Q_TILES = ceil_div(Q, TILE_Q);

static_assert(T == 1 && STRIDE_H == 1 && STRIDE_W == 1 && (DILATION_W == 1 || S == 1), "taps of a row are neighbours");
static_assert(K == C && sizeof(TW) == 2, "a filter for each channel, of 16 bits");

using FilterBands = Bands<R, S, DILATION_H, TILE_P, TILE_Q, 1, WARP_P>;

// The shared memory of a block: operands, and afterwards the sums, pixel by pixel.
union BandMemory {
  FilterBands::Operands operands;
  float sums[TILE_P][TILE_Q * (CHANNELS + 1) + 1];  // lanes that store meet in few banks
};

// The tile that a block works on, and its first channel.
struct BandPlace {
  Index image, z, p, q;
  int channel;

  __device__ __forceinline__ explicit BandPlace(const GridBlock& block) {
    image = static_cast<Index>(block.x);
    q = take_coordinate(image, Q_TILES) * TILE_Q;
    p = take_coordinate(image, P_TILES) * TILE_P;
    z = take_coordinate(image, Z);
    channel = static_cast<int>(block.y) * CHANNELS;
  }
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
  const BandPlace place(block);
  if (place.image >= images_of(n)) return;
  const FilterBands bands;
  FilterBands::Sums sums = {};
  if constexpr (MULTIPLIES) {
    fill_filters(memory.operands, w, place.channel);
    const bool finite =
        FilterBands::fill_input<Input>(memory.operands, x, place.image, place.channel, place.z * STRIDE_D - PAD_FRONT,
                                       place.p - PAD_TOP, place.q - PAD_LEFT);
    if (__syncthreads_and(finite)) {
      bands.multiply(memory.operands, sums);
    } else {
      bands.add_taps(memory.operands, R, S, sums);
    }
    __syncthreads();  // all have read the operands
  }
  bands.for_each_sum(
      sums, [&](int row, int column, float sum) { memory.sums[row][column * (CHANNELS + 1) + bands.channel] = sum; });
  __syncthreads();
  constexpr int RUNS = CHANNELS / Y_RUN;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < TILE_P * TILE_Q * RUNS; i += THREADS) {
    const int in_block = i % RUNS * Y_RUN, column = i / RUNS % TILE_Q, row = i / RUNS / TILE_Q;
    const int k = place.channel + in_block;
    const Index p = place.p + row, q = place.q + column;
    if (p >= P || q >= Q || k >= K) continue;
    float run[Y_RUN];
#pragma unroll
    for (int j = 0; j < Y_RUN; ++j) run[j] = memory.sums[row][column * (CHANNELS + 1) + in_block + j];
    finish_outputs<true>(y, OutputPixel(place.image, place.z, p, q), k, run, arguments);
  }
}
