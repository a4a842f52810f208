// Direct convolution for filters of few elements (first layers, small groups): any strides.
//
// A thread computes TILE_P output rows x TILE_K channels of one output column. Going down a column of x, each element
// that it loads serves every tap row and output row that meet there, and neighbouring lanes load neighbouring columns.
// While a column is multiplied the next ones load: AHEAD of them have registers.
// The block's TILE_K filters stand in shared memory as f32, channels side by side; all lanes read the same ones.
// The functions are bodies of kernels of THREADS threads.
//
// From the prelude, besides the problem: TILE_P, TILE_K, THREADS, X_RUN, Y_RUN, UNROLL_S, UNROLL_C and
// AHEAD (conv/direct/direct.cpp); P_TILES of a column of y, and K_TILES of a group's channels.
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

// The way of a thread through its window: tap planes inside the image, channels, tap columns, in groups of UNROLL_C *
// UNROLL_S columns of x.
struct Place {
  const TX* from;  // the first row of x there
  int t, c, s;

  // So many channels, tap planes and tap columns on.
  static __device__ __forceinline__ constexpr Index way(int c, int t, int s) {
    return Input::at(0, c, Index(t) * DILATION_D, 0, Index(s) * DILATION_W);
  }
  // Column number `i` of the group that begins here.
  __device__ __forceinline__ Place column(int i) const {
    const int channels = i / UNROLL_S * X_RUN, columns = i % UNROLL_S;
    return {from + way(channels, 0, columns), t, c + channels, s + columns};
  }
  // Goes on to the next group.
  __device__ __forceinline__ void advance() {
    s += UNROLL_S;
    from += way(0, 0, UNROLL_S);
    if (s < S) return;
    s = 0;
    c += UNROLL_C * X_RUN;
    from += way(UNROLL_C * X_RUN, 0, -S);
    if (T == 1 || c < C_PER_GROUP) return;
    c = 0;
    ++t;
    from += way(-C_PER_GROUP, 1, 0);
  }
  // Whether that was the last one.
  __device__ __forceinline__ bool is_behind(int end_plane) const { return T == 1 ? c >= C_PER_GROUP : t >= end_plane; }
};

// Which elements of x a thread's window finds inside the image.
struct Inside {
  Index left;     // of its first tap column
  unsigned rows;  // one bit each

  __device__ __forceinline__ unsigned rows_of(int s) const {
    return static_cast<UnsignedIndex>(left + Index(s) * DILATION_W) < UnsignedIndex(W) ? rows : 0;
  }
};

// Elements of one input column at one tap column, as they are stored: X_RUN channels of each row that a tap meets. Zero
// outside the image.
struct Column {
  Vector<TX, X_RUN> runs[INPUT_ROWS];

  __device__ __forceinline__ void load(const Place& at, const Inside& inside, bool exists) {
    const unsigned rows = exists ? inside.rows_of(at.s) : 0;
#pragma unroll
    for (int row = 0; row < INPUT_ROWS; ++row) {
      if (!meets(row)) continue;
      const bool loads = (rows >> row & 1u) != 0;
      runs[row] = loads ? load_readonly<X_RUN>(at.from + Index(row) * Index(X_STRIDE_H)) : zeros<TX, X_RUN>();
    }
  }
};

// sums += the products of the column of x at a place.
__device__ __forceinline__ void multiply(const Column& column, const Place& at, const Inside& inside,
                                         const FilterTile& filters, int first_channel, const UserArguments& user,
                                         float (&sums)[TILE_P][TILE_K]) {
  const unsigned rows = inside.rows_of(at.s);
#pragma unroll
  for (int i = 0; i < X_RUN; ++i) {
    float values[INPUT_ROWS];
#pragma unroll
    for (int row = 0; row < INPUT_ROWS; ++row) {
      if (!meets(row)) continue;
      values[row] = user_entered_if((rows >> row & 1u) != 0, column.runs[row][i], first_channel + at.c + i, user);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const Vector<float, TILE_K> taps = load<TILE_K>(filters.of(at.c + i, at.t, r, at.s));
#pragma unroll
      for (int p = 0; p < TILE_P; ++p) {
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
          sums[p][k] = fmaf(values[p * STRIDE_H + r * DILATION_H], taps[k], sums[p][k]);
        }
      }
    }
  }
}

// sums += the products of a thread's whole window. A column that has been multiplied makes room for one to come, AHEAD
// columns on. The compiler puts loads off until they are needed, but not across the loop's end.
__device__ __forceinline__ void multiply_window(Place at, int end_plane, const Inside& inside,
                                                const FilterTile& filters, int first_channel, const UserArguments& user,
                                                float (&sums)[TILE_P][TILE_K]) {
  constexpr int GROUP = UNROLL_C * UNROLL_S;
  static_assert(AHEAD <= GROUP, "columns to come are of this group or the next");
  if (at.t >= end_plane) return;
  Column columns[AHEAD];
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) columns[i].load(at.column(i), inside, true);
  while (!at.is_behind(end_plane)) {
    Place next = at;
    next.advance();
    asm("" : "+l"(next.from));  // the compiler would work the address out again for each load
#pragma unroll
    for (int i = 0; i < GROUP; ++i) {
      Column& column = columns[i % AHEAD];
      const Place place = at.column(i);
      multiply(column, place, inside, filters, first_channel, user, sums);
      if (i + AHEAD < GROUP) {
        column.load(at.column(i + AHEAD), inside, true);
      } else {
        column.load(next.column(i + AHEAD - GROUP), inside, !next.is_behind(end_plane));
      }
    }
    Column turned[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) turned[i] = columns[(i + GROUP) % AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) columns[i] = turned[i];
    at = next;
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
  Inside inside = {left, 0};
#pragma unroll
  for (int row = 0; row < INPUT_ROWS; ++row) {
    inside.rows |= static_cast<unsigned>(static_cast<UnsignedIndex>(top + row) < UnsignedIndex(H)) << row;
  }
  // Tap planes inside the image.
  const auto first_plane = front >= 0 ? 0 : static_cast<int>(ceil_div(-front, Index(DILATION_D)));
  const auto end_plane =
      static_cast<int>(smaller(Index(T), front < Index(D) ? ceil_div(Index(D) - front, Index(DILATION_D)) : Index(0)));

  float sums[TILE_P][TILE_K] = {};
  if constexpr (MULTIPLIES) {
    const TX* const corner =
        x + (group * Index(X_STRIDE_G) + Input::at(image, 0, front, top, left));  // may lie outside
    multiply_window({corner + Place::way(0, first_plane, 0), first_plane, 0, 0}, end_plane, inside, filters,
                    group * C_PER_GROUP, arguments.user, sums);
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
