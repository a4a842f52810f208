// Direct convolution for filters of few elements (first layers, small groups): any strides.
//
// A thread computes TILE_P output rows x TILE_K channels of one output column. Going down a column of x, each element
// that it loads serves every tap row and output row that meet there, and neighbouring lanes load neighbouring columns.
// The block's TILE_K filters stand in shared memory as f32, channels side by side; all lanes read the same ones.
// The functions are bodies of kernels of THREADS threads.
//
// From the prelude, besides the problem: TILE_P, TILE_K, THREADS, X_RUN, Y_RUN, UNROLL_S and UNROLL_C
// (conv/direct/direct.cpp); P_TILES of a column of y, and K_TILES of a group's channels.
#include "lib/conv_operands.cuh"
#include "lib/index.cuh"

constexpr int INPUT_ROWS = (TILE_P - 1) * STRIDE_H + (R - 1) * DILATION_H + 1;  // of a thread

static_assert(INPUT_ROWS <= 32, "one bit an input row");
static_assert(C_PER_GROUP % X_RUN == 0, "an access stays in its group");

// Whether some tap row of some output row of a thread meets its input row number `row`.
__host__ __device__ constexpr bool meets(int row) {
  for (int p = 0; p < TILE_P; ++p) {
    const int down = row - p * STRIDE_H;
    if (down >= 0 && down % DILATION_H == 0 && down / DILATION_H < R) return true;
  }
  return false;
}

// Elements of one input column at one tap column: X_RUN channels of each row that a tap meets. Zero outside the image.
struct Column {
  float values[INPUT_ROWS][X_RUN];

  __device__ __forceinline__ Column(const TX* top, unsigned rows_inside, bool inside, int channel,
                                    const UserArguments& user) {
#pragma unroll
    for (int row = 0; row < INPUT_ROWS; ++row) {
      if (!meets(row)) continue;
      const bool exists = inside && (rows_inside >> row & 1u) != 0;
      const Vector<TX, X_RUN> run =
          exists ? load_readonly<X_RUN>(top + Index(row) * Index(X_STRIDE_H)) : zeros<TX, X_RUN>();
#pragma unroll
      for (int i = 0; i < X_RUN; ++i) values[row][i] = user_entered_if(exists, run[i], channel + i, user);
    }
  }
};

// Filter elements of the block, numbered as lib/conv_operands.cuh says; TILE_K channels each, zero for those that do
// not exist.
struct FilterTile {
  static constexpr int ELEMENTS = FILTER_ELEMENTS * TILE_K;
  // The compiler may join loads of neighbours into ones of four: they find no element that nobody has written.
  static constexpr int FLOATS = ceil_div(ELEMENTS, 4) * 4;
  alignas(16) float values[FLOATS];

  __device__ __forceinline__ void fill(const TW* w, Index first_filter, int channels) {
    for (int i = static_cast<int>(threadIdx.x); i < FLOATS; i += THREADS) {
      if (i >= ELEMENTS) {
        values[i] = 0.0f;
        continue;
      }
      const int k = i / FILTER_ELEMENTS, element = i % FILTER_ELEMENTS;
      const Index offset = first_filter_element(first_filter + k) + filter_offset(element);
      values[element * TILE_K + k] = k < channels ? to_float(w[offset]) : 0.0f;
    }
  }

  __device__ __forceinline__ const float* of(int c, int t, int r, int s) const {
    const int plane = MIRRORED ? T - 1 - t : t, row = MIRRORED ? R - 1 - r : r, column = MIRRORED ? S - 1 - s : s;
    const int tap = (plane * R + row) * S + column;
    return values + (CHANNELS_INNER ? tap * C_PER_GROUP + c : c * TAPS + tap) * TILE_K;
  }
};

// The shared memory of a block.
using BlockMemory = FilterTile;

// sums += the products of one column of x with tap column s of tap plane t of channels c, c + 1, ... c + X_RUN - 1.
__device__ __forceinline__ void multiply(const Column& column, const FilterTile& filters, int c, int t, int s,
                                         float (&sums)[TILE_P][TILE_K]) {
#pragma unroll
  for (int i = 0; i < X_RUN; ++i) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const Vector<float, TILE_K> taps = load<TILE_K>(filters.of(c + i, t, r, s));
#pragma unroll
      for (int p = 0; p < TILE_P; ++p) {
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
          sums[p][k] = fmaf(column.values[p * STRIDE_H + r * DILATION_H][i], taps[k], sums[p][k]);
        }
      }
    }
  }
}

__device__ __forceinline__ void convolve_direct(BlockMemory& filters, const GridBlock& block, const TX* x, const TW* w,
                                                TY* y, const EpilogueArguments& arguments, long long n) {
  int group = static_cast<int>(block.y);
  const int first_k = take_coordinate(group, K_TILES) * TILE_K;
  const int channels = smaller(TILE_K, K_PER_GROUP - first_k);
  const Index first_filter = static_cast<Index>(group) * K_PER_GROUP + first_k;
  filters.fill(w, first_filter, channels);
  __syncthreads();

  Index image = static_cast<Index>(block.x) * THREADS + static_cast<Index>(threadIdx.x);
  if (image >= images_of(n) * (Index(Z) * P_TILES * Q)) return;
  const Index q = take_coordinate(image, Q);
  const Index first_p = take_coordinate(image, P_TILES) * TILE_P;
  const Index z = take_coordinate(image, Z);
  const Index front = z * STRIDE_D - PAD_FRONT, top = first_p * STRIDE_H - PAD_TOP, left = q * STRIDE_W - PAD_LEFT;
  const TX* const corner = x + (group * Index(X_STRIDE_G) + Input::at(image, 0, front, top, left));
  unsigned rows_inside = 0;
#pragma unroll
  for (int row = 0; row < INPUT_ROWS; ++row) {
    rows_inside |= static_cast<unsigned>(static_cast<UnsignedIndex>(top + row) < UnsignedIndex(H)) << row;
  }

  float sums[TILE_P][TILE_K] = {};
#pragma unroll 1
  for (int t = 0; t < (MULTIPLIES ? T : 0); ++t) {
    if (static_cast<UnsignedIndex>(front + Index(t) * DILATION_D) >= UnsignedIndex(D)) continue;
#pragma unroll UNROLL_C
    for (int c = 0; c < C_PER_GROUP; c += X_RUN) {
#pragma unroll UNROLL_S
      for (int s = 0; s < S; ++s) {
        const Index right = Index(s) * DILATION_W;
        const bool inside = static_cast<UnsignedIndex>(left + right) < UnsignedIndex(W);
        const Column column(corner + Input::at(0, c, Index(t) * DILATION_D, 0, right), rows_inside, inside,
                            group * C_PER_GROUP + c, arguments.user);
        multiply(column, filters, c, t, s, sums);
      }
    }
  }

#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
    if (P % TILE_P != 0 && first_p + p >= P) break;
    const OutputPixel pixel(image, z, first_p + p, q);
#pragma unroll
    for (int k = 0; k < TILE_K; k += Y_RUN) {
      if (K_PER_GROUP % TILE_K != 0 && k >= channels) break;
      float run[Y_RUN];
#pragma unroll
      for (int i = 0; i < Y_RUN; ++i) run[i] = sums[p][k + i];
      finish_outputs<Y_ALONG_K>(y, pixel, first_filter + k, run, arguments);
    }
  }
}

// The whole of a kernel whose blocks are all of one class.
__device__ __forceinline__ void convolve_direct(const TX* x, const TW* w, TY* y, const EpilogueArguments& arguments,
                                                long long n) {
  __shared__ BlockMemory filters;
  convolve_direct(filters, GridBlock(), x, w, y, arguments, n);
}
