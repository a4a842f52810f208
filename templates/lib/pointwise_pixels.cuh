// The left operand of a 1x1 convolution with unit stride and no padding: loaders of x in vectors of X_RUN, which are
// neighbouring channels if CHANNELS_INNER, else neighbouring pixels. X_PIXELS_ARE_ONE_RUN: those of all images are
// evenly spaced, X_PIXEL_STRIDE apart.
#include "lib/conv_tile.cuh"

// The image that a prologue meets at pixel number `pixel`.
__device__ __forceinline__ int image_of(Index pixel) {
  return USER_OF_IMAGES ? static_cast<int>(pixel / PIXELS_PER_IMAGE) : 0;
}

// Along the pixels: a thread keeps to X_RUN pixels and steps through the channels.
class PointwiseAlongPixels {
  static constexpr int RUNS = BLOCK_M / X_RUN;  // of a row
  static constexpr int ROW_STEP = larger(1, THREADS / RUNS);

 public:
  using Kept = KeptX;
  static constexpr int RUN = X_RUN;
  static constexpr int COUNT = ceil_div(BLOCK_K, ROW_STEP);
  static constexpr bool DOWN = false;

  __device__ __forceinline__ PointwiseAlongPixels(const TX* x, const UserArguments& user, const BlockTile& tile)
      : user_(user) {
    const int thread = static_cast<int>(threadIdx.x);
    column_ = thread % RUNS * RUN;
    row_ = thread / RUNS;
    const Index pixel = tile.first_pixel + column_;
    exists_ = pixel < tile.pixels;
    channel_ = channel_at(first_channel(tile.group, pixel), row_);
    pixel_ = pixel;
    x_ = x + (Input::of_pixel<IMAGES_INNER>(pixel) + tile.group * Index(X_STRIDE_G) + row_ * Index(X_STRIDE_C));
  }

  template <class Runs>
  __device__ __forceinline__ void fetch(int chunk, Runs& runs) const {
    const TX* const first = x_ + static_cast<Index>(chunk) * (BLOCK_K * Index(X_STRIDE_C));
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const bool exists =
          exists_ && is_in_tile(i) && (FILTER_ELEMENTS % BLOCK_K == 0 || chunk * BLOCK_K + row(i) < FILTER_ELEMENTS);
      const TX* const address = first + Index(i) * ROW_STEP * X_STRIDE_C;
      runs.fetch_run(*this, i, exists, channel_at(channel_, chunk * BLOCK_K + i * ROW_STEP),
                     [address] { return address; });
    }
  }
  __device__ __forceinline__ Vector<KeptX, RUN> load_run(const TX* address, int channel) const {
    const Vector<TX, RUN> run = load_readonly<RUN>(address);
    const bool of_one_image = !USER_OF_IMAGES || PIXELS_PER_IMAGE % RUN == 0;
    if (of_one_image) return user_kept<false>(run, PrologueIndex(channel, image_of(pixel_)), user_);
    Vector<KeptX, RUN> kept;
#pragma unroll
    for (int i = 0; i < RUN; ++i) kept[i] = user_kept(run[i], PrologueIndex(channel, image_of(pixel_ + i)), user_);
    return kept;
  }

  __device__ __forceinline__ int row(int i) const {
    return row_ + i * ROW_STEP;
  }
  __device__ __forceinline__ int column(int) const {
    return column_;
  }
  __device__ __forceinline__ bool is_in_tile(int i) const {
    return COUNT * ROW_STEP == BLOCK_K || row(i) < BLOCK_K;
  }

 private:
  static constexpr bool APPLIES = POINTWISE && !CHANNELS_INNER;
  static_assert(!APPLIES || THREADS % RUNS == 0, "threads tile the rows");
  static_assert(!APPLIES || !IMAGES_INNER || RUN == 1, "neighbouring pixels are of different images");

  const TX* x_;
  const UserArguments& user_;
  int channel_;  // of row 0 of chunk 0, as this thread loads it
  Index pixel_;  // the first of the run's
  int column_, row_;
  bool exists_;
};

// Along the channels: a thread keeps to X_RUN channels of the chunk and steps through the pixels.
class PointwiseAlongChannels {
  static constexpr int RUNS = larger(1, BLOCK_K / X_RUN);  // of a column
  static constexpr int COLUMN_STEP = THREADS / RUNS;

 public:
  using Kept = KeptX;
  static constexpr int RUN = X_RUN;
  static constexpr int COUNT = ceil_div(BLOCK_M, COLUMN_STEP);
  static constexpr bool DOWN = true;

  __device__ __forceinline__ PointwiseAlongChannels(const TX* x, const UserArguments& user, const BlockTile& tile)
      : user_(user), pixels_(tile.pixels - tile.first_pixel) {
    const int thread = static_cast<int>(threadIdx.x);
    column_ = thread / RUNS;
    row_ = thread % RUNS * RUN;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      channels_[i] = channel_at(first_channel(tile.group, tile.first_pixel + column(i)), row_);
      images_[i] = image_of(tile.first_pixel + column(i));
    }
    x_ = x + (tile.group * Index(X_STRIDE_G) + row_ * Index(X_STRIDE_C));
    if constexpr (EVEN) x_ += (tile.first_pixel + column_) * Index(X_PIXEL_STRIDE);
#pragma unroll
    for (int i = 0; i < COUNT && !EVEN; ++i) {
      offset_[i] = Input::of_pixel<IMAGES_INNER>(tile.first_pixel + column(i));
    }
  }

  template <class Runs>
  __device__ __forceinline__ void fetch(int chunk, Runs& runs) const {
    const TX* const first = x_ + static_cast<Index>(chunk) * (BLOCK_K * Index(X_STRIDE_C));
    const bool row_exists = C_PER_GROUP % BLOCK_K == 0 || chunk * BLOCK_K + row_ < C_PER_GROUP;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const bool exists = row_exists && is_in_tile(i) && column(i) < pixels_;
      runs.fetch_run(*this, i, exists, PrologueIndex(channel_at(channels_[i], chunk * BLOCK_K), images_[i]),
                     [&] { return first + offset(i); });
    }
  }
  __device__ __forceinline__ Vector<KeptX, RUN> load_run(const TX* address, PrologueIndex at) const {
    return user_kept<!IMAGES_ARE_CHANNELS>(load_readonly<RUN>(address), at, user_);
  }

  __device__ __forceinline__ int row(int) const {
    return row_;
  }
  __device__ __forceinline__ int column(int i) const {
    return column_ + i * COLUMN_STEP;
  }
  __device__ __forceinline__ bool is_in_tile(int i) const {
    return COUNT * COLUMN_STEP == BLOCK_M || column(i) < BLOCK_M;
  }

 private:
  static constexpr bool APPLIES = POINTWISE && CHANNELS_INNER;
  static_assert(!APPLIES || THREADS % RUNS == 0, "threads tile the columns");

  // Pixels at one distance from each other need no offset each.
  static constexpr bool EVEN = X_PIXELS_ARE_ONE_RUN && !IMAGES_INNER;

  __device__ __forceinline__ Index offset(int i) const {
    return EVEN ? Index(i) * COLUMN_STEP * Index(X_PIXEL_STRIDE) : offset_[EVEN ? 0 : i];
  }

  const TX* x_;
  const UserArguments& user_;
  int channels_[COUNT];  // of row 0 of chunk 0, as this thread loads it
  int images_[COUNT];
  Index pixels_;  // from this tile on
  Index offset_[EVEN ? 1 : COUNT];
  int column_, row_;
};

using PointwisePixels = typename Select<CHANNELS_INNER, PointwiseAlongChannels, PointwiseAlongPixels>::type;
