// The left operand of an implicit matrix product: loaders of the elements of x that a chunk needs of the image, for any
// stride, padding, dilation and groups. The im2col matrix exists only in shared memory, a tile at a time.
#include "lib/conv_tile.cuh"
#include "lib/windows.cuh"

// The window of the pixel in column `column` of a tile, and the first channel there.
template <class Tile>
__device__ __forceinline__ void place(Window& window, int& channel, const Tile& tile, int column) {
  const Index pixel = tile.first_pixel + column;
  window.place(tile.region, tile.group, tile.number_of(pixel), tile.holds(pixel));
  channel = first_channel(tile.group, tile.number_of(pixel));
}

// Loader of x along the pixels: a thread keeps to one column (pixel) or a few, whose lanes are neighbours, and steps
// through the rows.
class Im2colAlongPixels {
  static constexpr int COLUMNS = larger(1, BLOCK_M / THREADS);
  static constexpr int ROW_STEP = larger(1, THREADS / BLOCK_M);
  static constexpr int ROWS = ceil_div(BLOCK_K, ROW_STEP);

 public:
  using Kept = KeptX;
  static constexpr int RUN = 1;
  static constexpr int COUNT = ROWS * COLUMNS;
  static constexpr bool DOWN = false;

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

  template <class Runs>
  __device__ __forceinline__ void fetch(int chunk, Runs& runs) const {
    const int chunk_row = chunk * BLOCK_K;
    const TX* const channel = x_ + static_cast<Index>(chunk) * (BLOCK_K / TAPS * Index(X_STRIDE_C));
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int row = first_row_ + j * ROW_STEP;
      const bool exists = (ROWS * ROW_STEP == BLOCK_K || row < BLOCK_K) &&
                          (FILTER_ELEMENTS % BLOCK_K == 0 || chunk_row + row < FILTER_ELEMENTS);
      if constexpr (SAME_TAPS) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
          const bool inside = exists && (inside_[i] >> j & 1u) != 0;
          const PrologueIndex at(channel_at(channels_[i], (chunk_row + row) / TAPS), windows_[i].image);
          runs.fetch_run(*this, j * COLUMNS + i, inside, at,
                         [&] { return channel + (windows_[i].offset + distance_[j]); });
        }
      } else {
        int c = chunk_row + row;
        const Tap tap = take_tap(c);
        const Index distance = c * Index(X_STRIDE_C) + tap.offset();
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
          const bool inside = exists && windows_[i].holds(tap);
          runs.fetch_run(*this, j * COLUMNS + i, inside, PrologueIndex(channel_at(channels_[i], c), windows_[i].image),
                         [&] { return x_ + (windows_[i].offset + distance); });
        }
      }
    }
  }
  __device__ __forceinline__ Vector<KeptX, RUN> load_run(const TX* address, PrologueIndex at) const {
    // A plain load, unlike __ldg(), takes what addresses of a chunk differ by as a constant.
    Vector<KeptX, RUN> run;
    run[0] = user_kept(*address, at, user_);
    return run;
  }

  __device__ __forceinline__ int row(int i) const {
    return first_row_ + i / COLUMNS * ROW_STEP;
  }
  __device__ __forceinline__ int column(int i) const {
    return first_column_ + i % COLUMNS * THREADS;
  }
  __device__ __forceinline__ bool is_in_tile(int i) const {
    return ROWS * ROW_STEP == BLOCK_K || row(i) < BLOCK_K;
  }

 private:
  // Chunks of whole channels: a row is the same tap in every chunk, so all that depends on it is computed once.
  static constexpr bool SAME_TAPS = WHOLE_CHANNELS;
  static_assert(CHANNELS_INNER || BLOCK_M % THREADS == 0 || THREADS % BLOCK_M == 0, "threads tile the columns");
  static_assert(CHANNELS_INNER || ROWS <= 32, "one bit a row");

  // Splits a number (c, t, r, s): returns the tap and leaves c.
  __device__ __forceinline__ static Tap take_tap(int& c) {
    const int s = take_coordinate(c, S);
    const int r = take_coordinate(c, R);
    const int t = take_coordinate(c, T);
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
};

// Loader of x along the channels: X_RUN of them of a pixel at a time.
class Im2colAlongChannels {
  static constexpr int RUNS = BLOCK_K / X_RUN;  // of a column
  static constexpr int COLUMN_STEP = THREADS / RUNS;

 public:
  using Kept = KeptX;
  static constexpr int RUN = X_RUN;
  static constexpr int COUNT = ceil_div(BLOCK_M, COLUMN_STEP);
  static constexpr bool DOWN = true;

  template <class Tile>
  __device__ __forceinline__ Im2colAlongChannels(const TX* x, const UserArguments& user, const Tile& tile)
      : x_(x), user_(user) {
    const int thread = static_cast<int>(threadIdx.x);
    first_column_ = thread / RUNS;
    row_ = thread % RUNS * RUN;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) place(windows_[i], channels_[i], tile, column(i));
  }

  template <class Runs>
  __device__ __forceinline__ void fetch(int chunk, Runs& runs) const {
    const int tap = tap_of_chunk(chunk);
    const int c = channel_of_chunk(chunk, tap) + row_;
    const Tap place(T == 1 ? 0 : tap / (R * S), T == 1 ? tap / S : tap / S % R, tap % S);
    const Index distance = place.offset() + c * Index(X_STRIDE_C);
    const bool exists = C_PER_GROUP % BLOCK_K == 0 || c < C_PER_GROUP;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const bool inside = exists && is_in_tile(i) && windows_[i].holds(place);
      runs.fetch_run(*this, i, inside, PrologueIndex(channel_at(channels_[i], c), windows_[i].image),
                     [&] { return x_ + (windows_[i].offset + distance); });
    }
  }
  __device__ __forceinline__ Vector<KeptX, RUN> load_run(const TX* address, PrologueIndex at) const {
    return user_kept<!IMAGES_ARE_CHANNELS>(load_readonly<RUN>(address), at, user_);
  }

  __device__ __forceinline__ int row(int) const {
    return row_;
  }
  __device__ __forceinline__ int column(int i) const {
    return first_column_ + i * COLUMN_STEP;
  }
  __device__ __forceinline__ bool is_in_tile(int i) const {
    return COUNT * COLUMN_STEP == BLOCK_M || column(i) < BLOCK_M;
  }

 private:
  static_assert(!CHANNELS_INNER || THREADS % RUNS == 0, "threads tile the rows");

  const TX* x_;
  const UserArguments& user_;
  int first_column_, row_;
  Window windows_[COUNT];
  int channels_[COUNT];  // first_channel()
};

using Im2colPixels = typename Select<CHANNELS_INNER, Im2colAlongChannels, Im2colAlongPixels>::type;
