// Correlation of the channels of x with rows of taps on tensor cores, each channel with its own, for rows of many taps:
//
//   sums[i][j] += sum over r < TAP_ROWS and s < TAPS of x[i * ROW_STEP + r * TAP_STEP][j + s] * taps[r][s]
//
// A row of taps is a *band*: a matrix whose element (column, j) is tap column - j of the row, and 0 beside it. 16 rows
// of x times that matrix are what this row of taps gives 16 rows of 8 sums:
//
//   x, 16 rows                          band of 3 taps a b c        sums
//   |x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 ..|  |a          |
//   |                                |  |b a        |
//   |                                |  |c b a      |          =      16 rows of 8
//   |                                |  |  c b a    |
//   |                                |  |    c b .. |
//
// A band has TAPS + 7 rows that are not zero, cut into STEPS of 16. The same one serves all sums of a channel: 8 sums
// further, x is read 8 columns further. So a warp, which has a channel, reads each element of x from shared memory once
// for a row of taps, as matrices of 8 columns, and makes the band of the row from a few words.
//
// Zero times infinity is no zero: where x has infinities or NaN, its block makes the sums tap by tap.
//
// From the prelude: TX, of 16 bits; CHANNELS, those of a block; THREADS; X_RUN, channels of an access to x; K, D, H, W
// and X_STRIDE_W.
#include "lib/index.cuh"
#include "lib/padded_vector.cuh"
#include "lib/tensor_cores.cuh"

// The bits of an exponent, which infinities and NaN have all.
__host__ __device__ constexpr unsigned exponent_of(const f16*) {
  return 0x7c00;
}
__host__ __device__ constexpr unsigned exponent_of(const bf16*) {
  return 0x7f80;
}

// Whether one of two elements is no number.
__device__ __forceinline__ bool has_infinity(unsigned word) {
  constexpr unsigned EXPONENT = exponent_of(static_cast<const TX*>(nullptr));
  return (word & EXPONENT) == EXPONENT || (word >> 16 & EXPONENT) == EXPONENT;
}

// Calls visit(c, word) for RUN channels of two neighbouring columns that are `step` elements apart: a word has those of
// one channel, and zero for a column that is not there.
template <int RUN, class T, class Visit>
__device__ __forceinline__ void for_each_pair(const T* first, Index step, bool has_first, bool has_second,
                                              Visit visit) {
  using Bits = Vector<unsigned short, RUN>;
  const auto* const at = reinterpret_cast<const unsigned short*>(first);
  const Bits one = load_readonly_if<RUN>(has_first, at), other = load_readonly_if<RUN>(has_second, at + step);
#pragma unroll
  for (int c = 0; c < RUN; ++c) visit(c, one[c] | static_cast<unsigned>(other[c]) << 16);
}

template <int TAP_ROWS, int TAPS, int TAP_STEP, int ROWS, int COLUMNS, int ROW_STEP, int WARP_ROWS>
struct Bands {
  static constexpr int STEPS = ceil_div(TAPS + 7, 16);          // of a band
  static constexpr int MATRICES = COLUMNS / 8 + 2 * STEPS - 1;  // of 8 columns of x, that a row of sums reads
  static constexpr int PAIRS = ceil_div(MATRICES, 2);           // of these: one access reads two
  static constexpr int INPUT_ROWS = (ROWS - 1) * ROW_STEP + (TAP_ROWS - 1) * TAP_STEP + 1;
  static constexpr int INPUT_COLUMNS = 16 * PAIRS;
  static constexpr int MET_COLUMNS = COLUMNS + TAPS - 1;  // others meet zeros of bands alone
  static constexpr int PITCH = INPUT_COLUMNS + 8;         // elements: rows of a matrix in different banks
  static constexpr int AHEAD = 4;                         // words of zeros before a row of taps
  static constexpr int LINE = AHEAD + 8 * STEPS + 1;      // words of a row of taps, with zeros behind it

  static_assert(sizeof(TX) == 2, "elements have 16 bits");
  static_assert(ROWS % WARP_ROWS == 0 && WARP_ROWS % 16 == 0 && COLUMNS % 8 == 0, "products have 16 rows, 8 columns");
  static_assert(THREADS == 32 * CHANNELS * (ROWS / WARP_ROWS), "a warp has a channel");

  // In shared memory, channel by channel, two elements a word.
  struct Operands {
    unsigned taps[CHANNELS][TAP_ROWS][LINE];
    alignas(16) unsigned x[CHANNELS][INPUT_ROWS][PITCH / 2];
  };
  using Sums = float[WARP_ROWS / 16][COLUMNS / 8][4];

  // The warp's channel in the block and its first row of sums; the lane.
  int channel = static_cast<int>(threadIdx.x) / 32 % CHANNELS;
  int row = static_cast<int>(threadIdx.x) / 32 / CHANNELS * WARP_ROWS;
  int lane = static_cast<int>(threadIdx.x) % 32;

  // Brings the channels from `first` on of a plane of x, which is an Input (lib/strided.cuh), from row `top` and column
  // `left` on: two neighbouring columns at a time, zeros outside of the image. Whether all elements are finite.
  template <class Input>
  __device__ __forceinline__ static bool fill_input(Operands& operands, const TX* x, Index image, int first, Index d,
                                                    Index top, Index left) {
    using Unsigned = UnsignedOf<Index>::type;
    constexpr int VECTORS = CHANNELS / X_RUN, WORDS = INPUT_COLUMNS / 2;
    bool infinite = false;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < VECTORS * WORDS * INPUT_ROWS; i += THREADS) {
      const int in_block = i % VECTORS * X_RUN, word = i / VECTORS % WORDS, at = i / VECTORS / WORDS;
      const Index h = top + at, w = left + 2 * word;
      const bool exists =
          static_cast<Unsigned>(d) < Unsigned(D) && static_cast<Unsigned>(h) < Unsigned(H) && first + in_block < K;
      const bool has_first = exists && 2 * word < MET_COLUMNS && static_cast<Unsigned>(w) < Unsigned(W);
      const bool has_second = exists && 2 * word + 1 < MET_COLUMNS && static_cast<Unsigned>(w + 1) < Unsigned(W);
      for_each_pair<X_RUN>(x + Input::at(image, first + in_block, d, h, w), Index(X_STRIDE_W), has_first, has_second,
                           [&](int c, unsigned pair) {
                             infinite |= has_infinity(pair);
                             operands.x[in_block + c][at][word] = pair;
                           });
    }
    return !infinite;
  }

  // Adds what the operands give, which all threads of the block have brought: `finite` is what fill_input() told this
  // one. `rows` rows of `taps` taps are there; the others are zeros, which count for nothing.
  __device__ __forceinline__ void add(const Operands& operands, bool finite, int rows, int taps, Sums& sums) const {
    if (__syncthreads_and(finite)) {
      multiply(operands, sums);
    } else {
      for_each_sum(sums,
                   [&](int i, int j, float& sum) { sum = sum_of_taps(operands, channel, i, j, rows, taps, sum); });
    }
  }

  // Calls visit(i, j, sum) for the sums of this lane.
  template <class Visit>
  __device__ __forceinline__ void for_each_sum(Sums& sums, Visit visit) const {
#pragma unroll
    for (int m = 0; m < WARP_ROWS / 16; ++m) {
#pragma unroll
      for (int n = 0; n < COLUMNS / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          visit(row + 16 * m + lane / 4 + e / 2 * 8, 8 * n + lane % 4 * 2 + e % 2, sums[m][n][e]);
        }
      }
    }
  }

 private:
  __device__ __forceinline__ void multiply(const Operands& operands, Sums& sums) const {
    const unsigned first = shared_address(&operands.x[channel][(row + lane % 16) * ROW_STEP][lane / 16 * 4]);
#pragma unroll 1
    for (int r = 0; r < TAP_ROWS; ++r) {
      unsigned band[STEPS][2];
      make_band(operands.taps[channel][r], band);
#pragma unroll
      for (int m = 0; m < WARP_ROWS / 16; ++m) {
        unsigned pairs[PAIRS][4];
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
          load_matrices<false>(
              pairs[i], first + static_cast<unsigned>(2 * ((16 * m * ROW_STEP + r * TAP_STEP) * PITCH + 16 * i)));
        }
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
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

  // The lane's words of the band of a row of taps. A word has two neighbours, of which the first may be the second one
  // of a word of taps.
  __device__ __forceinline__ void make_band(const unsigned (&taps)[LINE], unsigned (&band)[STEPS][2]) const {
    const int first = 2 * AHEAD + lane % 4 * 2 - lane / 4;
    const unsigned selector = first % 2 == 0 ? 0x3210u : 0x5432u;
#pragma unroll
    for (int i = 0; i < 2 * STEPS; ++i) {
      const int word = first / 2 + 4 * i;
      band[i / 2][i % 2] = __byte_perm(taps[word], taps[word + 1], selector);
    }
  }

  // A call, because it is out of the ordinary: neither the compiler nor those who model the time of machine code should
  // take it for the way.
  __device__ __noinline__ static float sum_of_taps(const Operands& operands, int channel, int i, int j, int rows,
                                                   int taps, float sum) {
#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
      const TX* const elements = reinterpret_cast<const TX*>(operands.x[channel][i * ROW_STEP + r * TAP_STEP]) + j;
      const TX* const factors = reinterpret_cast<const TX*>(operands.taps[channel][r] + AHEAD);
#pragma unroll 1
      for (int s = 0; s < taps; ++s) sum = fmaf(to_float(elements[s]), to_float(factors[s]), sum);
    }
    return sum;
  }
};
