// Convolution as a matrix product whose left operand is never stored: sums[m][n] over k, with m the output pixels
// (image, p, q), n the output channels of one group, and k the filter's elements.
//
// k runs in the memory order of the filter and is cut into chunks of BLOCK_K rows. Packed nchw: k = (c, r, s), and a
// chunk is any BLOCK_K consecutive k. Packed nhwc: k = (r, s, c), and a chunk is BLOCK_K channels of one tap (r, s).
// Rows beyond the filter, taps outside the image and pixels beyond the last are zero in shared memory.
//
// From the prelude: the problem; NHWC; X_RUN and W_RUN, the elements that one access of x (nhwc) and w moves; STAGES,
// the number of tiles in shared memory; and the tile of lib/gemm_tile.cuh.
#include "lib/gemm_tile.cuh"
#include "lib/index.cuh"
#include "lib/vector.cuh"

constexpr int TAPS = R * S;
constexpr int FILTER = C_PER_GROUP * TAPS;  // elements of one output channel's filter
constexpr int CHUNKS_PER_TAP = ceil_div(C_PER_GROUP, BLOCK_K);
constexpr int CHUNKS = NHWC ? TAPS * CHUNKS_PER_TAP : ceil_div(FILTER, BLOCK_K);
constexpr int N_TILES = ceil_div(K_PER_GROUP, BLOCK_N);  // of one group

using PixelTile = SharedTile<BLOCK_M, NHWC ? X_RUN : BLOCK_K>;
using FilterTile = SharedTile<BLOCK_N, W_RUN>;
using UnsignedIndex = UnsignedOf<Index>::type;

// What one block computes: BLOCK_M pixels from first_pixel on, BLOCK_N channels of `group` from first_k on.
struct BlockTile {
  Index first_pixel;
  Index pixels;  // of all images
  int group;
  int first_k;

  // The grid's x and y only count: blocks that run side by side share their pixels, and differ in channels.
  __device__ __forceinline__ explicit BlockTile(long long n) {
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    const int tile = static_cast<int>(block % (GROUPS * N_TILES));
    first_pixel = static_cast<Index>(block / (GROUPS * N_TILES)) * BLOCK_M;
    pixels = (DYNAMIC_N ? static_cast<Index>(n) : N) * Index(P) * Q;
    group = tile / N_TILES;
    first_k = tile % N_TILES * BLOCK_N;
  }
};

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
class PixelsNchw {
 public:
  __device__ __forceinline__ PixelsNchw(const TX* x, const BlockTile& tile) : x_(x) {
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
class PixelsNhwc {
 public:
  __device__ __forceinline__ PixelsNhwc(const TX* x, const BlockTile& tile) : x_(x) {
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

// Moves chunks of w to shared memory, W_RUN elements of one filter at a time: consecutive lanes read consecutive
// elements.
class Filters {
 public:
  __device__ __forceinline__ Filters(const TW* w, const BlockTile& tile) : w_(w) {
    const int channels = K_PER_GROUP - tile.first_k;  // of the group from this tile on
    const Index first = static_cast<Index>(tile.group) * K_PER_GROUP + tile.first_k;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      exists_[i] = column(i) < smaller(channels, BLOCK_N);
      offset_[i] = (first + column(i)) * FILTER + row(i);
    }
  }

  __device__ __forceinline__ void fetch(int chunk) {
    const int tap = chunk / CHUNKS_PER_TAP;
    const int c = chunk % CHUNKS_PER_TAP * BLOCK_K;
    const int first = NHWC ? tap * C_PER_GROUP + c : chunk * BLOCK_K;
    const int rows = NHWC ? C_PER_GROUP - c : FILTER - first;  // that exist, from this chunk on
    constexpr bool WHOLE = (NHWC ? C_PER_GROUP : FILTER) % BLOCK_K == 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const bool inside = exists_[i] && (WHOLE || row(i) < rows);
      values_[i] = inside ? load_readonly<W_RUN>(w_ + (offset_[i] + first)) : zeros<TW, W_RUN>();
    }
  }

  __device__ __forceinline__ void stash(FilterTile& tile) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (COUNT * THREADS != RUNS * BLOCK_N && column(i) >= BLOCK_N) continue;
#pragma unroll
      for (int j = 0; j < W_RUN; ++j) tile.at(row(i) + j, column(i)) = to_float(values_[i][j]);
    }
  }

 private:
  static constexpr int RUNS = BLOCK_K / W_RUN;
  static constexpr int COUNT = ceil_div(RUNS * BLOCK_N, THREADS);
  static_assert((NHWC ? C_PER_GROUP : FILTER) % W_RUN == 0, "an access stays in its rows");

  __device__ __forceinline__ static int column(int i) {
    return (static_cast<int>(threadIdx.x) + i * THREADS) / RUNS;
  }
  __device__ __forceinline__ static int row(int i) {
    return (static_cast<int>(threadIdx.x) + i * THREADS) % RUNS * W_RUN;
  }

  const TW* w_;
  Index offset_[COUNT];
  bool exists_[COUNT];
  Vector<TW, W_RUN> values_[COUNT];
};

template <bool IS_NHWC>
struct PixelsOf {
  using type = PixelsNchw;
};
template <>
struct PixelsOf<true> {
  using type = PixelsNhwc;
};

// sums over the chunks [first, last): loads of the next chunk are under way while this one is multiplied.
__device__ __forceinline__ void convolve_tile(const TX* x, const TW* w, const BlockTile& tile, int first, int last,
                                              const TilePosition& position, float (&sums)[THREAD_M][THREAD_N]) {
  __shared__ PixelTile pixel_tiles[STAGES];
  __shared__ FilterTile filter_tiles[STAGES];
#pragma unroll
  for (int m = 0; m < THREAD_M; ++m) {
#pragma unroll
    for (int n = 0; n < THREAD_N; ++n) sums[m][n] = 0.0f;
  }
  if (first >= last) return;

  typename PixelsOf<NHWC>::type pixels(x, tile);
  Filters filters(w, tile);
  pixels.fetch(first);
  filters.fetch(first);
  pixels.stash(pixel_tiles[0]);
  filters.stash(filter_tiles[0]);
  __syncthreads();
  int stage = 0;
  for (int chunk = first; chunk < last; ++chunk) {
    const bool more = chunk + 1 < last;
    if (more) {
      pixels.fetch(chunk + 1);
      filters.fetch(chunk + 1);
    }
    multiply_tiles(pixel_tiles[stage], filter_tiles[stage], position, sums);
    if (!more) break;
    if constexpr (STAGES == 1) __syncthreads();
    if constexpr (STAGES == 2) stage ^= 1;
    pixels.stash(pixel_tiles[stage]);
    filters.stash(filter_tiles[stage]);
    __syncthreads();
  }
}

// Calls visit(offset, values, channel) for the sums of this thread, in runs of Y_RUN that lie side by side in y:
// `offset` is the element of y of the first, `channel` its k. Nothing for pixels and channels that do not exist.
template <class Visit>
__device__ __forceinline__ void for_each_output_run(const BlockTile& tile, const TilePosition& position,
                                                    const float (&sums)[THREAD_M][THREAD_N], Visit visit) {
  constexpr int STEP_M = NHWC ? 1 : Y_RUN;
  constexpr int STEP_N = NHWC ? Y_RUN : 1;
#pragma unroll
  for (int m = 0; m < THREAD_M; m += STEP_M) {
    const Index pixel = tile.first_pixel + position.m + m / QUAD * QUAD_DISTANCE_M + m % QUAD;
    if (pixel >= tile.pixels) continue;
    Index image = pixel;
    const Index place = take_coordinate<static_cast<long long>(P) * Q>(image);
    const Index pixel_offset = NHWC ? pixel * K : image * K * (Index(P) * Q) + place;
#pragma unroll
    for (int n = 0; n < THREAD_N; n += STEP_N) {
      const int in_group = tile.first_k + position.n + n / QUAD * QUAD_DISTANCE_N + n % QUAD;
      if (in_group >= K_PER_GROUP) continue;
      const int channel = tile.group * K_PER_GROUP + in_group;
      float values[Y_RUN];
#pragma unroll
      for (int i = 0; i < Y_RUN; ++i) values[i] = NHWC ? sums[m][n + i] : sums[m + i][n];
      visit(pixel_offset + (NHWC ? Index(channel) : channel * (Index(P) * Q)), values, channel);
    }
  }
}
