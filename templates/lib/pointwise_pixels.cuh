// The left operand of a 1x1 convolution with unit stride and no padding: moves x to shared memory in vectors of X_RUN,
// which are neighbouring channels if CHANNELS_INNER, else neighbouring pixels.
#include "lib/conv_tile.cuh"

// Along the pixels: a thread keeps to X_RUN pixels and steps through the channels.
class PointwiseAlongPixels {
 public:
  __device__ __forceinline__ PointwiseAlongPixels(const TX* x, const UserArguments& user, const BlockTile& tile)
      : user_(user) {
    const int thread = static_cast<int>(threadIdx.x);
    column_ = thread % RUNS * X_RUN;
    row_ = thread / RUNS;
    const Index pixel = tile.first_pixel + column_;
    exists_ = pixel < tile.pixels;
    channel_ = channel_at(first_channel(tile.group, pixel), row_);
    x_ = x + (Input::of_pixel<IMAGES_INNER>(pixel) + tile.group * Index(X_STRIDE_G) + row_ * Index(X_STRIDE_C));
  }

  __device__ __forceinline__ void fetch(int chunk) {
    const TX* const first = x_ + static_cast<Index>(chunk) * (BLOCK_K * Index(X_STRIDE_C));
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int row = row_ + j * ROW_STEP;
      const bool exists = exists_ && (ROWS * ROW_STEP == BLOCK_K || row < BLOCK_K) &&
                          (FILTER % BLOCK_K == 0 || chunk * BLOCK_K + row < FILTER);
      values_[j] = exists ? user_kept<false>(load_readonly<X_RUN>(first + Index(j) * ROW_STEP * X_STRIDE_C),
                                             channel_at(channel_, chunk * BLOCK_K + j * ROW_STEP), user_)
                          : zeros<KeptX, X_RUN>();
    }
  }

  __device__ __forceinline__ void stash(PixelTile& tile) const {
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int row = row_ + j * ROW_STEP;
      if (ROWS * ROW_STEP != BLOCK_K && row >= BLOCK_K) continue;
      Vector<float, X_RUN> run;
#pragma unroll
      for (int i = 0; i < X_RUN; ++i) run[i] = to_float(values_[j][i]);
      store<X_RUN>(&tile.at(row, column_), run);
    }
  }

 private:
  static constexpr bool APPLIES = POINTWISE && !CHANNELS_INNER;
  static constexpr int RUNS = BLOCK_M / X_RUN;  // of a row
  static constexpr int ROW_STEP = larger(1, THREADS / RUNS);
  static constexpr int ROWS = ceil_div(BLOCK_K, ROW_STEP);
  static_assert(!APPLIES || THREADS % RUNS == 0, "threads tile the rows");
  static_assert(!APPLIES || PIXELS_PER_IMAGE % X_RUN == 0, "an access stays in its image");
  static_assert(!APPLIES || !IMAGES_INNER || X_RUN == 1, "neighbouring pixels are of different images");

  const TX* x_;
  const UserArguments& user_;
  int channel_;  // of row 0 of chunk 0, as this thread loads it
  int column_, row_;
  bool exists_;
  Vector<KeptX, X_RUN> values_[ROWS];
};

// Along the channels: a thread keeps to X_RUN channels of the chunk and steps through the pixels.
class PointwiseAlongChannels {
 public:
  __device__ __forceinline__ PointwiseAlongChannels(const TX* x, const UserArguments& user, const BlockTile& tile)
      : user_(user), pixels_(tile.pixels - tile.first_pixel) {
    const int thread = static_cast<int>(threadIdx.x);
    column_ = thread / RUNS;
    row_ = thread % RUNS * X_RUN;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      channels_[i] = channel_at(first_channel(tile.group, tile.first_pixel + column_ + i * COLUMN_STEP), row_);
    }
    x_ = x + (tile.group * Index(X_STRIDE_G) + row_ * Index(X_STRIDE_C));
    if constexpr (EVEN) x_ += Input::of_pixel(tile.first_pixel + column_);
#pragma unroll
    for (int i = 0; i < COLUMNS && !EVEN; ++i) {
      offset_[i] = Input::of_pixel<IMAGES_INNER>(tile.first_pixel + column_ + i * COLUMN_STEP);
    }
  }

  __device__ __forceinline__ void fetch(int chunk) {
    const TX* const first = x_ + static_cast<Index>(chunk) * (BLOCK_K * Index(X_STRIDE_C));
    const bool row_exists = C_PER_GROUP % BLOCK_K == 0 || chunk * BLOCK_K + row_ < C_PER_GROUP;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      const int column = column_ + i * COLUMN_STEP;
      const bool exists = row_exists && (COLUMNS * COLUMN_STEP == BLOCK_M || column < BLOCK_M) && column < pixels_;
      values_[i] = exists ? user_kept<!IMAGES_ARE_CHANNELS>(load_readonly<X_RUN>(first + offset(i)),
                                                            channel_at(channels_[i], chunk * BLOCK_K), user_)
                          : zeros<KeptX, X_RUN>();
    }
  }

  __device__ __forceinline__ void stash(PixelTile& tile) const {
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      const int column = column_ + i * COLUMN_STEP;
      if (COLUMNS * COLUMN_STEP != BLOCK_M && column >= BLOCK_M) continue;
#pragma unroll
      for (int j = 0; j < X_RUN; ++j) tile.at(row_ + j, column) = to_float(values_[i][j]);
    }
  }

 private:
  static constexpr bool APPLIES = POINTWISE && CHANNELS_INNER;
  static constexpr int RUNS = larger(1, BLOCK_K / X_RUN);  // of a column
  static constexpr int COLUMN_STEP = THREADS / RUNS;
  static constexpr int COLUMNS = ceil_div(BLOCK_M, COLUMN_STEP);
  static_assert(!APPLIES || THREADS % RUNS == 0, "threads tile the columns");
  static_assert(!APPLIES || C_PER_GROUP % X_RUN == 0, "an access stays in its group");

  // Pixels at one distance from each other need no offset each.
  static constexpr bool EVEN = Input::PIXELS_ARE_ONE_RUN && !IMAGES_INNER;

  __device__ __forceinline__ Index offset(int i) const {
    return EVEN ? Input::of_pixel(Index(i) * COLUMN_STEP) : offset_[EVEN ? 0 : i];
  }

  const TX* x_;
  const UserArguments& user_;
  int channels_[COLUMNS];  // of row 0 of chunk 0, as this thread loads it
  Index pixels_;           // from this tile on
  Index offset_[EVEN ? 1 : COLUMNS];
  int column_, row_;
  Vector<KeptX, X_RUN> values_[COLUMNS];
};

using PointwisePixels = typename Select<CHANNELS_INNER, PointwiseAlongChannels, PointwiseAlongPixels>::type;
