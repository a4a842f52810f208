// The left operand of an implicit matrix product: moves the elements of x that a chunk needs from the image to shared
// memory, for any stride, padding, dilation and groups. The im2col matrix exists only there, a tile at a time.
#include "lib/conv_tile.cuh"
#include "lib/windows.cuh"

// The window of the pixel in column `column` of a tile, and the first channel there.
template <class Tile>
__device__ __forceinline__ void place(Window& window, int& channel, const Tile& tile, int column) {
  const Index pixel = tile.first_pixel + column;
  window.place(tile.region, tile.group, tile.number_of(pixel), tile.holds(pixel));
  channel = first_channel(tile.group, tile.number_of(pixel));
}

// Moves chunks of x to shared memory along the pixels: a thread keeps to one column (pixel) or a few, whose lanes are
// neighbours, and steps through the rows.
class Im2colAlongPixels {
 public:
  template <class Tile>
  __device__ __forceinline__ Im2colAlongPixels(const TX* x, const UserArguments& user, const Tile& tile)
      : x_(x), user_(user) {
    const int thread = static_cast<int>(threadIdx.x);
    first_column_ = thread % BLOCK_M;
    first_row_ = thread / BLOCK_M;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) place(windows_[i], channels_[i], tile, first_column_ + i * THREADS);
    if constexpr (SAME_TAPS) {
#pragma unroll
      for (int j = 0; j < ROWS; ++j) remember(j);
    }
  }

  // Starts loading chunk number `chunk`.
  __device__ __forceinline__ void fetch(int chunk) {
    const int chunk_row = chunk * BLOCK_K;
    const TX* const channel = x_ + static_cast<Index>(chunk) * (BLOCK_K / TAPS * Index(X_STRIDE_C));
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int row = first_row_ + j * ROW_STEP;
      const bool exists =
          (ROWS * ROW_STEP == BLOCK_K || row < BLOCK_K) && (FILTER % BLOCK_K == 0 || chunk_row + row < FILTER);
      if constexpr (SAME_TAPS) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
          const bool inside = exists && (inside_[i] >> j & 1u) != 0;
          const int c = channel_at(channels_[i], (chunk_row + row) / TAPS);
          values_[i][j] = inside ? user_kept(channel[windows_[i].offset + distance_[j]], c, user_) : KeptX{};
        }
      } else {
        int c = chunk_row + row;
        const Tap tap = take_tap(c);
        const Index distance = c * Index(X_STRIDE_C) + tap.offset();
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
          const bool inside = exists && windows_[i].holds(tap);
          values_[i][j] =
              inside ? user_kept(x_[windows_[i].offset + distance], channel_at(channels_[i], c), user_) : KeptX{};
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
  static_assert(CHANNELS_INNER || BLOCK_M % THREADS == 0 || THREADS % BLOCK_M == 0, "threads tile the columns");
  static_assert(CHANNELS_INNER || ROWS <= 32, "one bit a row");

  // Splits a number (c, t, r, s): returns the tap and leaves c.
  __device__ __forceinline__ static Tap take_tap(int& c) {
    const int s = take_coordinate<S>(c);
    const int r = take_coordinate<R>(c);
    const int t = take_coordinate<T>(c);
    return Tap(t, r, s);
  }

  __device__ __forceinline__ void remember(int j) {
    int c = first_row_ + j * ROW_STEP;
    const Tap tap = take_tap(c);
    distance_[j] = c * Index(X_STRIDE_C) + tap.offset();
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      if (j == 0) inside_[i] = 0;
      inside_[i] |= static_cast<unsigned>(windows_[i].holds(tap)) << j;
    }
  }

  const TX* x_;
  const UserArguments& user_;
  int first_column_, first_row_;
  Window windows_[COLUMNS];
  int channels_[COLUMNS];  // first_channel()
  Index distance_[SAME_TAPS ? ROWS : 1];
  unsigned inside_[COLUMNS];  // bit j: row j's tap is inside the image
  KeptX values_[COLUMNS][ROWS];
};

// A number that the compiler knows nothing of. NVRTC 13.0 divides a number of few taps in 8 bits and then moves a term
// of the result past the mask: the first tap of a row read 256 elements too far.
__device__ __forceinline__ int opaque(int number) {
  asm("" : "+r"(number));
  return number;
}

// Moves chunks of x to shared memory along the channels: X_RUN of them of a pixel at a time.
class Im2colAlongChannels {
 public:
  template <class Tile>
  __device__ __forceinline__ Im2colAlongChannels(const TX* x, const UserArguments& user, const Tile& tile)
      : x_(x), user_(user) {
    const int thread = static_cast<int>(threadIdx.x);
    first_column_ = thread / RUNS;
    row_ = thread % RUNS * X_RUN;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) place(windows_[i], channels_[i], tile, first_column_ + i * COLUMN_STEP);
  }

  __device__ __forceinline__ void fetch(int chunk) {
    const int tap = opaque(chunk / CHUNKS_PER_TAP);
    const int c = chunk % CHUNKS_PER_TAP * BLOCK_K + row_;
    const Tap place(T == 1 ? 0 : tap / (R * S), T == 1 ? tap / S : tap / S % R, tap % S);
    const Index distance = place.offset() + c * Index(X_STRIDE_C);
    const bool exists = C_PER_GROUP % BLOCK_K == 0 || c < C_PER_GROUP;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      const bool inside =
          exists && (COLUMNS * COLUMN_STEP == BLOCK_M || column(i) < BLOCK_M) && windows_[i].holds(place);
      values_[i] = inside ? user_kept<!IMAGES_ARE_CHANNELS>(load_readonly<X_RUN>(x_ + (windows_[i].offset + distance)),
                                                            channel_at(channels_[i], c), user_)
                          : zeros<KeptX, X_RUN>();
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
  static_assert(!CHANNELS_INNER || THREADS % RUNS == 0, "threads tile the rows");
  static_assert(!CHANNELS_INNER || C_PER_GROUP % X_RUN == 0, "an access stays in its group");

  __device__ __forceinline__ int column(int i) const {
    return first_column_ + i * COLUMN_STEP;
  }

  const TX* x_;
  const UserArguments& user_;
  int first_column_, row_;
  Window windows_[COLUMNS];
  int channels_[COLUMNS];  // first_channel()
  Vector<KeptX, X_RUN> values_[COLUMNS];
};

using Im2colPixels = typename Select<CHANNELS_INNER, Im2colAlongChannels, Im2colAlongPixels>::type;
