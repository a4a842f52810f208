// Convolution as an implicit matrix product for few pixels and channels but long filters: SPLIT_K blocks share one
// tile, each sums its part of the filter, and a second kernel adds the parts in a fixed order.
//
// parts: [SPLIT_K][elements of y at the largest batch] f32, each without gaps, channels side by side if Y_ALONG_K, else
// the pixels of an image, or of all images if these stand side by side in y.
//
// From the prelude, besides the problem and the tile: SPLIT_K, and every part has a chunk; PARTS_BY_IMAGES, whether the
// pixels of all images stand side by side in y; REDUCE_THREADS, those of a block of the second kernel,
// TEAMS, into which they are divided, and ADDED, the elements of a thread; PARTS_FIRST, the elements before the first
// part; and STORED_N and STORED_K, the images and channels whose outputs are stored, or 0 for all of them.
#include "lib/conv_tile.cuh"

__device__ __forceinline__ Index part_elements() {
  return Index(N) * K * PIXELS_PER_IMAGE;
}
// Pixels side by side, and how often.
__device__ __forceinline__ Index part_pixels() {
  return PARTS_BY_IMAGES ? Index(N) * PIXELS_PER_IMAGE : PIXELS_PER_IMAGE;
}
__device__ __forceinline__ Index parts_of_images() {
  return PARTS_BY_IMAGES ? 1 : N;
}

// The first channel of an output pixel in a part.
struct PartPixel {
  Index offset;

  __device__ __forceinline__ explicit PartPixel(Index pixel)
      : offset(Y_ALONG_K ? pixel * K : strided_offset(pixel, 1, part_pixels(), part_pixels() * K, parts_of_images())) {}
};

// Part number `part` of a tile, by the threads of a block. Pixels and Weights: the loaders of x and w.
template <class Product, class Pixels, class Weights = Filters<BlockTile>>
__device__ __forceinline__ void convolve_part(const GridBlock& block, const TX* x, const TW* w, float* parts,
                                              const UserArguments& user, long long n, int part) {
  const BlockTile tile(block, n);
  if (tile.first_pixel >= tile.pixels || part >= SPLIT_K) return;  // another class has more
  // The first parts have one chunk more, as many as there are chunks left over.
  const int whole = chunks_of_filter() / SPLIT_K, rest = chunks_of_filter() % SPLIT_K;
  const int first = part * whole + smaller(part, rest);
  const int last = first + whole + (part < rest ? 1 : 0);
  const typename Product::Position position;
  typename Product::Sums sums;
  if constexpr (MULTIPLIES) convolve_tile<Product, Pixels, Weights>(x, w, user, tile, first, last, position, sums);

  for_each_output_run<PartPixel>(tile, position, sums,
                                 [&](const PartPixel& pixel, int channel, const float(&values)[Y_RUN]) {
                                   Vector<float, Y_RUN> run;
#pragma unroll
                                   for (int i = 0; i < Y_RUN; ++i) run[i] = values[i];
                                   const Index offset = pixel.offset + channel * (Y_ALONG_K ? Index(1) : part_pixels());
                                   store<Y_RUN>(parts + (PARTS_FIRST + part * part_elements() + offset), run);
                                 });
}

// The second launch. A thread adds a few neighbours of some parts. Where parts are many, teams of threads share them,
// in the order of the depth.
constexpr int TEAM = REDUCE_THREADS / TEAMS;
static_assert(Y_RUN % ADDED == 0, "neighbours are stored together");

// Adds up `count` parts that lie `distance` apart from `from` on, RUN neighbours of each.
template <int RUN>
__device__ __forceinline__ void add_runs(float (&sums)[RUN], const float* from, Index distance, int count) {
  constexpr int AT_ONCE = 8;  // the estimate counts on it
#pragma unroll 1
  for (int part = 0; part < count; part += AT_ONCE) {
    Vector<float, RUN> runs[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      runs[i] = zeros<float, RUN>();
      if (part + i < count) runs[i] = load_readonly<RUN>(from + (part + i) * distance);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
#pragma unroll
      for (int j = 0; j < RUN; ++j) sums[j] += runs[i][j];
    }
  }
}

// Sums of RUN neighbours of `count` parts, which the threads of the first team get. All threads of a block call it.
template <int RUN>
__device__ __forceinline__ void add_by_teams(float (&sums)[RUN], const float* from, Index distance, int count) {
  const int team = static_cast<int>(threadIdx.x) / TEAM, first = team * count / TEAMS;
  add_runs(sums, from + first * distance, distance, (team + 1) * count / TEAMS - first);
  if constexpr (TEAMS > 1) {
    __shared__ Vector<float, RUN> of_teams[REDUCE_THREADS];
#pragma unroll
    for (int i = 0; i < RUN; ++i) of_teams[threadIdx.x][i] = sums[i];
    __syncthreads();
#pragma unroll
    for (int other = 1; other < TEAMS; ++other) {
#pragma unroll
      for (int i = 0; i < RUN; ++i) sums[i] += of_teams[threadIdx.x % TEAM + other * TEAM][i];
    }
  }
}

static_assert(STORED_N == 0 || IMAGES_INNER, "images are numbered first");

// Whether an output is one of y: others are sums of what operands are filled up with.
__device__ __forceinline__ bool is_stored(Index pixel, Index channel) {
  if constexpr (STORED_N > 0) {
    return take_coordinate(pixel, N) < STORED_N && channel < STORED_K;
  }
  return true;
}

// y from the parts, ADDED elements a thread.
__device__ __forceinline__ void add_parts(const GridBlock& block, const float* parts, TY* y,
                                          const EpilogueArguments& arguments, long long n) {
  const Index elements = images_of(n) * K * PIXELS_PER_IMAGE;
  const Index offset = (static_cast<Index>(block.x) * TEAM + static_cast<Index>(threadIdx.x % TEAM)) * ADDED;
  float sums[ADDED] = {};
  add_by_teams(sums, parts + (PARTS_FIRST + offset), part_elements(), offset < elements ? SPLIT_K : 0);
  if (offset >= elements || threadIdx.x >= TEAM) return;

  Index pixel = offset;
  Index channel;
  if constexpr (Y_ALONG_K) {
    channel = take_coordinate(pixel, K);
  } else {
    const Index place = take_coordinate(pixel, part_pixels());
    channel = take_coordinate(pixel, K);
    pixel = pixel * part_pixels() + place;
  }
  if (is_stored(pixel, channel)) finish_outputs<Y_ALONG_K>(y, OutputPixel(pixel), channel, sums, arguments);
}
