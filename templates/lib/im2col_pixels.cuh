// The left operand of an implicit matrix product: moves the elements of x that a chunk needs from the image to shared
// memory, for any stride, padding, dilation and groups. The im2col matrix exists only there, a tile at a time.
#include "lib/conv_tile.cuh"

// The input position under the filter's tap (0, 0) at one output pixel.
struct Window {
  Index h, w;
  Index offset;  // of x at (image, first channel of the group, h, w): maybe outside

  // Beyond the last pixel every tap is outside.
  __device__ __forceinline__ void place(const BlockTile& tile, Index pixel) {
    const bool exists = pixel < tile.pixels;
    const Index q = take_coordinate<Q>(pixel);
    const Index top = take_coordinate<P>(pixel) * STRIDE_H - PAD_TOP;
    w = q * STRIDE_W - PAD_LEFT;
    const Index c = static_cast<Index>(tile.group) * C_PER_GROUP;
    const Index image = pixel;
    offset = NHWC ? ((image * H + top) * W + w) * C + c : ((image * C + c) * H + top) * W + w;
    h = exists ? top : -(Index(1) << 30) - H;
  }

  // Whether a tap is inside the image; `down` and `right` are its distances from tap (0, 0).
  __device__ __forceinline__ bool holds(Index down, Index right) const {
    return static_cast<UnsignedIndex>(h + down) < UnsignedIndex(H) &&
           static_cast<UnsignedIndex>(w + right) < UnsignedIndex(W);
  }
};

// Distance of tap row r, or column s, from tap 0 in x. A mirrored filter meets x backwards.
__device__ __forceinline__ Index tap_down(int r) {
  return Index(MIRRORED ? R - 1 - r : r) * DILATION_H;
}
__device__ __forceinline__ Index tap_right(int s) {
  return Index(MIRRORED ? S - 1 - s : s) * DILATION_W;
}

// Moves chunks of x from packed nchw to shared memory. A thread keeps to one column (pixel) or a few, whose lanes are
// neighbours, and steps through the rows.
class Im2colNchw {
 public:
  __device__ __forceinline__ Im2colNchw(const TX* x, const BlockTile& tile) : x_(x) {
    const int thread = static_cast<int>(threadIdx.x);
    first_column_ = thread % BLOCK_M;
    first_row_ = thread / BLOCK_M;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) windows_[i].place(tile, tile.first_pixel + first_column_ + i * THREADS);
    if constexpr (SAME_TAPS) {
#pragma unroll
      for (int j = 0; j < ROWS; ++j) remember(j);
    }
  }

  // Starts loading chunk number `chunk`.
  __device__ __forceinline__ void fetch(int chunk) {
    const int chunk_row = chunk * BLOCK_K;
    const TX* const channel = x_ + static_cast<Index>(chunk) * (BLOCK_K / TAPS * Index(H) * W);
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int row = first_row_ + j * ROW_STEP;
      const bool exists =
          (ROWS * ROW_STEP == BLOCK_K || row < BLOCK_K) && (FILTER % BLOCK_K == 0 || chunk_row + row < FILTER);
      if constexpr (SAME_TAPS) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
          const bool inside = exists && (inside_[i] >> j & 1u) != 0;
          values_[i][j] = inside ? channel[windows_[i].offset + distance_[j]] : TX{};
        }
      } else {
        int c = chunk_row + row;
        const int s = take_coordinate<S>(c);
        const int r = take_coordinate<R>(c);
        const Index distance = distance_of(c, r, s);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
          const bool inside = exists && windows_[i].holds(tap_down(r), tap_right(s));
          values_[i][j] = inside ? x_[windows_[i].offset + distance] : TX{};
        }
      }
    }
  }

  // Stores the chunk that fetch() loaded.
  __device__ __forceinline__ void stash(PixelTile& tile) const {
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int row = first_row_ + j * ROW_STEP;
      if (ROWS * ROW_STEP != BLOCK_K && row >= BLOCK_K) continue;
#pragma unroll
      for (int i = 0; i < COLUMNS; ++i) tile.at(row, first_column_ + i * THREADS) = to_float(values_[i][j]);
    }
  }

 private:
  static constexpr int COLUMNS = larger(1, BLOCK_M / THREADS);
  static constexpr int ROW_STEP = larger(1, THREADS / BLOCK_M);
  static constexpr int ROWS = ceil_div(BLOCK_K, ROW_STEP);
  // Chunks of whole channels: a row is the same tap in every chunk, so all that depends on it is computed once.
  static constexpr bool SAME_TAPS = BLOCK_K % TAPS == 0;
  static_assert(NHWC || BLOCK_M % THREADS == 0 || THREADS % BLOCK_M == 0, "threads tile the columns");
  static_assert(NHWC || ROWS <= 32, "one bit a row");

  __device__ __forceinline__ static Index distance_of(int c, int r, int s) {
    return Index(c) * (Index(H) * W) + tap_down(r) * W + tap_right(s);
  }

  __device__ __forceinline__ void remember(int j) {
    int c = first_row_ + j * ROW_STEP;
    const int s = take_coordinate<S>(c);
    const int r = take_coordinate<R>(c);
    distance_[j] = distance_of(c, r, s);
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      if (j == 0) inside_[i] = 0;
      inside_[i] |= static_cast<unsigned>(windows_[i].holds(tap_down(r), tap_right(s))) << j;
    }
  }

  const TX* x_;
  int first_column_, first_row_;
  Window windows_[COLUMNS];
  Index distance_[SAME_TAPS ? ROWS : 1];
  unsigned inside_[COLUMNS];  // bit j: row j's tap is inside the image
  TX values_[COLUMNS][ROWS];
};

// Moves chunks of x from packed nhwc to shared memory, X_RUN channels of a pixel at a time.
class Im2colNhwc {
 public:
  __device__ __forceinline__ Im2colNhwc(const TX* x, const BlockTile& tile) : x_(x) {
    const int thread = static_cast<int>(threadIdx.x);
    first_column_ = thread / RUNS;
    row_ = thread % RUNS * X_RUN;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) windows_[i].place(tile, tile.first_pixel + first_column_ + i * COLUMN_STEP);
  }

  __device__ __forceinline__ void fetch(int chunk) {
    const int tap = chunk / CHUNKS_PER_TAP;
    const int c = chunk % CHUNKS_PER_TAP * BLOCK_K + row_;
    const Index down = tap_down(tap / S), right = tap_right(tap % S);
    const Index distance = (down * W + right) * C + c;
    const bool exists = C_PER_GROUP % BLOCK_K == 0 || c < C_PER_GROUP;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      const bool inside =
          exists && (COLUMNS * COLUMN_STEP == BLOCK_M || column(i) < BLOCK_M) && windows_[i].holds(down, right);
      values_[i] = inside ? load_readonly<X_RUN>(x_ + (windows_[i].offset + distance)) : zeros<TX, X_RUN>();
    }
  }

  __device__ __forceinline__ void stash(PixelTile& tile) const {
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      if (COLUMNS * COLUMN_STEP != BLOCK_M && column(i) >= BLOCK_M) continue;
#pragma unroll
      for (int j = 0; j < X_RUN; ++j) tile.at(row_ + j, column(i)) = to_float(values_[i][j]);
    }
  }

 private:
  static constexpr int RUNS = BLOCK_K / X_RUN;
  static constexpr int COLUMN_STEP = THREADS / RUNS;
  static constexpr int COLUMNS = ceil_div(BLOCK_M, COLUMN_STEP);
  static_assert(!NHWC || THREADS % RUNS == 0, "threads tile the rows");
  static_assert(!NHWC || C_PER_GROUP % X_RUN == 0, "an access stays in its group");

  __device__ __forceinline__ int column(int i) const {
    return first_column_ + i * COLUMN_STEP;
  }

  const TX* x_;
  int first_column_, row_;
  Window windows_[COLUMNS];
  Vector<TX, X_RUN> values_[COLUMNS];
};

using Im2colPixels = typename Select<NHWC, Im2colNhwc, Im2colNchw>::type;
