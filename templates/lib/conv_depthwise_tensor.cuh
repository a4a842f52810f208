// Depthwise convolution of f16 and bf16 on tensor cores, for windows of many taps: stride 1, a filter for each channel.
//
// A row of a filter is a *band*: a matrix whose element (j, q) is tap j - q of the row, and 0 beside it. 16 rows of x
// times that matrix are what this row of taps gives 16 rows of 8 outputs:
//
//   x, rows p + r                       band of S = 3 taps a b c      sums
//   |x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 ..|  |a          |
//   |                                |  |b a        |
//   |        16 rows                 |  |c b a      |          =      16 rows of 8 outputs
//   |                                |  |  c b a    |
//   |                                |  |    c b .. |
//
// A band has S + 7 rows that are not zero, cut into STEPS of 16. The same one serves all outputs of a channel: 8
// outputs further, x is read 8 columns further. So a warp, which has a channel, reads each element of x from shared
// memory once for a row of taps, as matrices of 8 columns, and makes the band of the row from a few words.
//
// Zero times infinity is no zero: where x has infinities or NaN under a tile, its sums are made tap by tap.
//
// From the prelude, besides the problem: CHANNELS, those of a block; TILE_P and TILE_Q, its outputs of each; WARP_P,
// the rows of outputs of a warp; X_RUN and Y_RUN, channels of an access to x and y; SHARED_BYTES; THREADS.
#include "lib/block_memory.cuh"
#include "lib/conv_operands.cuh"
#include "lib/tensor_cores.cuh"
#include "lib/padded_vector.cuh"

constexpr int STEPS = ceil_div(S + 7, 16);                              // of a band
constexpr int MATRICES = TILE_Q / 8 + 2 * STEPS - 1;                    // of 8 columns of x, that a row of outputs reads
constexpr int PAIRS = ceil_div(MATRICES, 2);                            // of these: one access reads two
constexpr int INPUT_ROWS = TILE_P + (R - 1) * DILATION_H;               // of x under a tile
constexpr int PITCH = 16 * PAIRS + 8;                                   // elements: rows of a matrix in different banks
constexpr int AHEAD = 4;                                                // words of zeros before a row of taps
constexpr int LINE = AHEAD + 8 * STEPS + 1;                             // words of a row of taps, with zeros behind it
constexpr int P_TILES = ceil_div(P, TILE_P), Q_TILES = ceil_div(Q, TILE_Q);

// The bits of an exponent, which infinities and NaN have all.
__host__ __device__ constexpr unsigned exponent_of(const f16*) {
  return 0x7c00;
}
__host__ __device__ constexpr unsigned exponent_of(const bf16*) {
  return 0x7f80;
}
constexpr unsigned EXPONENT = exponent_of(static_cast<const TX*>(nullptr));

static_assert(T == 1 && STRIDE_H == 1 && STRIDE_W == 1 && (DILATION_W == 1 || S == 1), "taps of a row are neighbours");
static_assert(K == C && sizeof(TX) == 2 && sizeof(TW) == 2, "a filter for each channel, of 16 bits");
static_assert(TILE_P % WARP_P == 0 && WARP_P % 16 == 0 && TILE_Q % 16 == 0, "products have 16 rows");
static_assert(THREADS == 32 * CHANNELS * (TILE_P / WARP_P), "a warp has a channel");

// The shared memory of a block: x and the filters channel by channel, and afterwards the sums pixel by pixel.
struct BandOperands {
  unsigned filters[CHANNELS][R][LINE];  // two taps a word
  alignas(16) unsigned x[CHANNELS][INPUT_ROWS][PITCH / 2];
};
union BandMemory {
  BandOperands operands;
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

__device__ __forceinline__ void fill_filters(BandOperands& operands, const TW* w, int first) {
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < CHANNELS * R * LINE; i += THREADS) {
    const int word = i % LINE, r = i / LINE % R, channel = i / LINE / R, s = 2 * (word - AHEAD);
    operands.filters[channel][r][word] =
        tap_of(w, first + channel, r, s) | tap_of(w, first + channel, r, s + 1) << 16;
  }
}

// Whether one of two elements is no number.
__device__ __forceinline__ bool has_infinity(unsigned word) {
  return (word & EXPONENT) == EXPONENT || (word >> 16 & EXPONENT) == EXPONENT;
}

// Two neighbouring columns at a time; zeros outside of the image. Whether all elements are finite.
__device__ __forceinline__ bool fill_input(BandOperands& operands, const TX* x, const BandPlace& place) {
  constexpr int VECTORS = CHANNELS / X_RUN, COLUMNS = PITCH / 2 - 4, MET = TILE_Q + S - 1;
  using Bits = Vector<unsigned short, X_RUN>;
  const Index d = place.z * STRIDE_D - PAD_FRONT;
  bool infinite = false;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < VECTORS * COLUMNS * INPUT_ROWS; i += THREADS) {
    const int channel = i % VECTORS * X_RUN, column = i / VECTORS % COLUMNS, row = i / VECTORS / COLUMNS;
    const Index h = place.p - PAD_TOP + row, left = place.q - PAD_LEFT + 2 * column;
    const bool exists = static_cast<UnsignedIndex>(d) < UnsignedIndex(D) &&
                        static_cast<UnsignedIndex>(h) < UnsignedIndex(H) && place.channel + channel < C;
    const auto* const at = reinterpret_cast<const unsigned short*>(
        x + Input::at(place.image, place.channel + channel, d, h, left));
    // Columns further right meet zeros of bands alone.
    const bool has_left = exists && 2 * column < MET && static_cast<UnsignedIndex>(left) < UnsignedIndex(W);
    const bool has_right = exists && 2 * column + 1 < MET && static_cast<UnsignedIndex>(left + 1) < UnsignedIndex(W);
    const Bits first = load_readonly_if<X_RUN>(has_left, at);
    const Bits second = load_readonly_if<X_RUN>(has_right, at + Index(X_STRIDE_W));
#pragma unroll
    for (int c = 0; c < X_RUN; ++c) {
      const unsigned word = first[c] | static_cast<unsigned>(second[c]) << 16;
      infinite |= has_infinity(word);
      operands.x[channel + c][row][column] = word;
    }
  }
  return !infinite;
}

// The outputs of a warp: WARP_P rows of TILE_Q.
using BandSums = float[WARP_P / 16][TILE_Q / 8][4];

// The warp's channel and first row in the tile.
struct BandWarp {
  int channel = static_cast<int>(threadIdx.x) / 32 % CHANNELS;
  int row = static_cast<int>(threadIdx.x) / 32 / CHANNELS * WARP_P;
  int lane = static_cast<int>(threadIdx.x) % 32;
};

// The lane's words of the band that a row of taps makes. Its taps are two neighbours, of which the first may be the
// second one of a word.
__device__ __forceinline__ void make_band(const unsigned (&taps)[LINE], int lane, unsigned (&band)[STEPS][2]) {
  const int first = 2 * AHEAD + lane % 4 * 2 - lane / 4;
  const unsigned selector = first % 2 == 0 ? 0x3210u : 0x5432u;
#pragma unroll
  for (int i = 0; i < 2 * STEPS; ++i) {
    const int word = first / 2 + 4 * i;
    band[i / 2][i % 2] = __byte_perm(taps[word], taps[word + 1], selector);
  }
}

__device__ __forceinline__ void multiply_bands(const BandOperands& operands, const BandWarp& warp, BandSums& sums) {
  const unsigned first = shared_address(&operands.x[warp.channel][warp.row + warp.lane % 16][warp.lane / 16 * 4]);
#pragma unroll 1
  for (int r = 0; r < R; ++r) {
    unsigned band[STEPS][2];
    make_band(operands.filters[warp.channel][r], warp.lane, band);
#pragma unroll
    for (int m = 0; m < WARP_P / 16; ++m) {
      unsigned pairs[PAIRS][4];
#pragma unroll
      for (int i = 0; i < PAIRS; ++i) {
        load_matrices<false>(pairs[i], first + static_cast<unsigned>(2 * ((16 * m + r * DILATION_H) * PITCH + 16 * i)));
      }
#pragma unroll
      for (int n = 0; n < TILE_Q / 8; ++n) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
          const int i = n + 2 * step, j = i + 1;
          const unsigned a[4] = {pairs[i / 2][i % 2 * 2], pairs[i / 2][i % 2 * 2 + 1], pairs[j / 2][j % 2 * 2],
                                 pairs[j / 2][j % 2 * 2 + 1]};
          multiply_fragments<TX>(sums[m][n], a, band[step]);
        }
      }
    }
  }
}

// The sum of an output of the block, tap by tap. A call, because it is out of the ordinary: neither the compiler nor
// those who model the time of machine code should take it for the way.
__device__ __noinline__ float sum_of_taps(const BandOperands& operands, int channel, int p, int q) {
  float sum = 0.0f;
#pragma unroll 1
  for (int r = 0; r < R; ++r) {
    const TX* const row = reinterpret_cast<const TX*>(operands.x[channel][p + r * DILATION_H]) + q;
    const TW* const taps = reinterpret_cast<const TW*>(operands.filters[channel][r] + AHEAD);
#pragma unroll 1
    for (int s = 0; s < S; ++s) sum = fmaf(to_float(row[s]), to_float(taps[s]), sum);
  }
  return sum;
}

// Calls visit(row, column, sum) for the sums of a lane, which lie in that row and column of the tile.
template <class Visit>
__device__ __forceinline__ void for_each_sum(const BandWarp& warp, BandSums& sums, Visit visit) {
#pragma unroll
  for (int m = 0; m < WARP_P / 16; ++m) {
#pragma unroll
    for (int n = 0; n < TILE_Q / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        visit(warp.row + 16 * m + warp.lane / 4 + e / 2 * 8, 8 * n + warp.lane % 4 * 2 + e % 2, sums[m][n][e]);
      }
    }
  }
}

__device__ __forceinline__ void convolve_bands(const GridBlock& block, const TX* x, const TW* w, TY* y,
                                               const EpilogueArguments& arguments, long long n) {
  static_assert(sizeof(BandMemory) <= SHARED_BYTES, "the launch asks for as much as operands and sums take");
  auto& memory = block_memory<BandMemory>();
  const BandPlace place(block);
  if (place.image >= images_of(n)) return;
  const BandWarp warp;
  BandSums sums = {};
  if constexpr (MULTIPLIES) {
    fill_filters(memory.operands, w, place.channel);
    const bool finite = fill_input(memory.operands, x, place);
    if (__syncthreads_and(finite)) {
      multiply_bands(memory.operands, warp, sums);
    } else {
      for_each_sum(warp, sums, [&](int row, int column, float& sum) {
        sum = sum_of_taps(memory.operands, warp.channel, row, column);
      });
    }
    __syncthreads();  // all have read the operands
  }
  for_each_sum(warp, sums, [&](int row, int column, float sum) {
    memory.sums[row][column * (CHANNELS + 1) + warp.channel] = sum;
  });
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
