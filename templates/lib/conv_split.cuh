// Convolution as an implicit matrix product for few pixels and channels but long filters: SPLIT_K blocks share one
// tile, each sums its part of the filter, and a second kernel adds the parts in a fixed order.
//
// parts: [SPLIT_K][elements of y at the largest batch] f32, each without gaps, channels side by side if Y_ALONG_K, else
// the pixels of an image.
//
// From the prelude, besides the problem and the tile: SPLIT_K, REDUCE_THREADS, and PARTS_FIRST, the elements before the
// first part.
#include "lib/conv_tile.cuh"

static_assert(SPLIT_K <= CHUNKS, "every part has a chunk");

constexpr Index PART_ELEMENTS = Index(N) * K * PIXELS_PER_IMAGE;

// The first channel of an output pixel in a part.
struct PartPixel {
  Index offset;

  __device__ __forceinline__ explicit PartPixel(Index pixel)
      : offset(Y_ALONG_K ? pixel * K : strided_offset<1, PIXELS_PER_IMAGE, PIXELS_PER_IMAGE * K, N>(pixel)) {}
};

// Part number `part` of a tile, by the threads of a block. Pixels and Weights: the loaders of x and w.
template <class Product, class Pixels, class Weights = Filters<BlockTile>>
__device__ __forceinline__ void convolve_part(const GridBlock& block, const TX* x, const TW* w, float* parts,
                                              const UserArguments& user, long long n, int part) {
  const BlockTile tile(block, n);
  if (tile.first_pixel >= tile.pixels || part >= SPLIT_K) return;  // another class has more
  // The first CHUNKS % SPLIT_K parts have one chunk more.
  constexpr int WHOLE = CHUNKS / SPLIT_K, REST = CHUNKS % SPLIT_K;
  const int first = part * WHOLE + smaller(part, REST);
  const int last = first + WHOLE + (part < REST ? 1 : 0);
  const typename Product::Position position;
  typename Product::Sums sums;
  if constexpr (MULTIPLIES) convolve_tile<Product, Pixels, Weights>(x, w, user, tile, first, last, position, sums);

  for_each_output_run<PartPixel>(
      tile, position, sums, [&](const PartPixel& pixel, int channel, const float(&values)[Y_RUN]) {
        Vector<float, Y_RUN> run;
#pragma unroll
        for (int i = 0; i < Y_RUN; ++i) run[i] = values[i];
        const Index offset = pixel.offset + channel * (Y_ALONG_K ? Index(1) : PIXELS_PER_IMAGE);
        store<Y_RUN>(parts + (PARTS_FIRST + part * PART_ELEMENTS + offset), run);
      });
}

// y from the parts; one run of Y_RUN elements a thread.
__device__ __forceinline__ void add_parts(const GridBlock& block, const float* parts, TY* y,
                                          const EpilogueArguments& arguments, long long n) {
  const Index elements = images_of(n) * K * PIXELS_PER_IMAGE;
  const Index offset = (static_cast<Index>(block.x) * REDUCE_THREADS + static_cast<Index>(threadIdx.x)) * Y_RUN;
  if (offset >= elements) return;

  float sums[Y_RUN] = {};
#pragma unroll 8  // split.cpp's estimate counts on it
  for (int part = 0; part < SPLIT_K; ++part) {
    const Vector<float, Y_RUN> run = load_readonly<Y_RUN>(parts + (PARTS_FIRST + part * PART_ELEMENTS + offset));
#pragma unroll
    for (int i = 0; i < Y_RUN; ++i) sums[i] += run[i];
  }

  Index pixel = offset;
  Index channel;
  if constexpr (Y_ALONG_K) {
    channel = take_coordinate<K>(pixel);
  } else {
    const Index place = take_coordinate<PIXELS_PER_IMAGE>(pixel);
    channel = take_coordinate<K>(pixel);
    pixel = pixel * PIXELS_PER_IMAGE + place;
  }
  finish_outputs<Y_ALONG_K>(y, OutputPixel(pixel), channel, sums, arguments);
}
