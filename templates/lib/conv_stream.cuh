// Convolution as an implicit matrix product on tensor cores whose blocks share the depth of tiles: in SPLIT_K parts of
// each tile (lib/conv_split.cuh), or evenly over all tiles (lib/stream.cuh), as BLOCKS says.
//
// slots: [BLOCKS + tiles][BLOCK_M * BLOCK_N] f32. The sums of a slot stand row by row if Y_ALONG_K, else column by
// column, whether their outputs exist or not: a warp stores its fragments as they are, in whole sectors.
//
// From the prelude, besides what lib/conv_split.cuh takes: BLOCKS, those that share all tiles; 0 with SPLIT_K parts of
// each.
#include "lib/conv_split.cuh"
#include "lib/stream.cuh"
#include "lib/tensor_tile.cuh"

constexpr bool STREAM_K = BLOCKS > 0;
constexpr int SLOT = BLOCK_M * BLOCK_N;  // sums
constexpr int OF_SLOT = 4;               // of these, by a thread of the second launch

// Tiles of this class whose depth is shared.
__device__ __forceinline__ unsigned streamed_tiles(long long n) {
  const Index rows = ceil_div(images_of(n) * PIXELS_PER_IMAGE, Index(BLOCK_M));
  return MULTIPLIES ? static_cast<unsigned>(rows) * (GROUPS * tiles_of_group()) : 0;
}
// The place behind `tiles` tiles of this class.
__device__ __forceinline__ StreamPlace behind(const StreamPlace& place, unsigned tiles) {
  return {place.tile + tiles, place.chunk + tiles * chunks_of_filter()};
}

// Leaves the sums of a warp in the slot of its block and tile.
__device__ __forceinline__ void leave_sums(float* slot, const TensorPosition& position, const TensorSums& sums) {
  constexpr int LINE = Y_ALONG_K ? BLOCK_N : BLOCK_M;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int m = position.m + lane / 4, n = position.n + lane % 4 * 2;
  float* const first = slot + (Y_ALONG_K ? m * LINE + n : n * LINE + m);
#pragma unroll
  for (int i = 0; i < 2 * FRAGMENTS_M; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * FRAGMENTS_N; ++j) {
      const Sum(&values)[4] = sums.values[i / 2][j];
      if constexpr (Y_ALONG_K) {
        Vector<float, 2> pair;
        pair[0] = static_cast<float>(values[i % 2 * 2]);
        pair[1] = static_cast<float>(values[i % 2 * 2 + 1]);
        store<2>(first + (8 * i * LINE + 8 * j), pair);
      } else {
        first[8 * j * LINE + 8 * i] = static_cast<float>(values[i % 2 * 2]);
        first[(8 * j + 1) * LINE + 8 * i] = static_cast<float>(values[i % 2 * 2 + 1]);
      }
    }
  }
}

// The tile of that number among those of this class, or of a product.
__device__ __forceinline__ BlockTile streamed_tile(unsigned number, long long n) {
  GridBlock block;
  block.x = number;
  block.y = 0;
  return BlockTile(block, n);
}

// The operands of a product.
struct StreamOperands {
  const TX* x;
  const TW* w;
};

// This block's share of the tiles of all of `products`, the first of which is at `place`. `operands(product)` are the
// StreamOperands of one. Pixels and Weights: the loaders of x and w.
template <class Product, class Pixels, class Weights, class Operands>
__device__ __forceinline__ void sum_share(const Stream& stream, const StreamPlace& place, unsigned products,
                                          float* slots, const UserArguments& user, long long n, Operands operands) {
  const unsigned tiles = streamed_tiles(n), block = blockIdx.x;
  unsigned at = larger(stream.first_of(block), place.chunk);
  unsigned end = smaller(stream.first_of(block + 1), behind(place, tiles * products).chunk);
  // The compiler would compute what classes have in common ahead of the first one, and keep it in registers.
  if constexpr (CLASSES > 1) asm volatile("" : "+r"(at), "+r"(end));
#pragma unroll 1
  while (at < end) {
    const unsigned number = (at - place.chunk) / chunks_of_filter(), first = (at - place.chunk) % chunks_of_filter();
    const unsigned last = smaller<unsigned>(first + (end - at), chunks_of_filter());
    const unsigned product = products == 1 ? 0 : number / tiles;
    const StreamOperands of = operands(static_cast<int>(product));
    const BlockTile tile = streamed_tile(number - product * tiles, n);
    const typename Product::Position position;
    typename Product::Sums sums;
    if constexpr (MULTIPLIES) {
      convolve_tile<Product, Pixels, Weights>(of.x, of.w, user, tile, static_cast<int>(first), static_cast<int>(last),
                                              position, sums);
    }
    leave_sums(slots + (block + place.tile + number) * Index(SLOT), position, sums);
    at += last - first;
  }
}

// y from the slots, whose first tile is at `place`, OF_SLOT elements a thread.
__device__ __forceinline__ void add_slots(const GridBlock& block, const Stream& stream, const StreamPlace& place,
                                          const float* slots, TY* y, const EpilogueArguments& arguments, long long n) {
  constexpr int SHARES = SLOT / OF_SLOT / TEAM;  // blocks of a tile
  static_assert(SHARES * OF_SLOT * TEAM == SLOT, "blocks tile the tile");
  const unsigned number = block.y * gridDim.x + block.x;
  const BlockTile tile = streamed_tile(number / SHARES, n);
  if (tile.first_pixel >= tile.pixels) return;  // another class has more
  constexpr int LINE = Y_ALONG_K ? BLOCK_N : BLOCK_M;
  const int element = static_cast<int>(number % SHARES * TEAM + threadIdx.x % TEAM) * OF_SLOT;

  float sums[OF_SLOT] = {};
  if constexpr (MULTIPLIES) {
    const StreamPlace here = behind(place, number / SHARES);
    const unsigned first = stream.block_of(here.chunk);
    const int count = static_cast<int>(stream.block_of(here.chunk + (chunks_of_filter() - 1)) - first) + 1;
    add_by_teams(sums, slots + ((first + here.tile) * Index(SLOT) + element), SLOT, count);
  }
  if (threadIdx.x >= TEAM) return;
#pragma unroll
  for (int i = 0; i < OF_SLOT; i += ADDED) {
    const int across = element / LINE, along = element % LINE + i;
    const Index pixel = tile.first_pixel + (Y_ALONG_K ? across : along);
    const int channel = tile.first_k + (Y_ALONG_K ? along : across);
    if (!tile.holds(pixel) || channel >= K_PER_GROUP) return;
    if (!is_stored(tile.number_of(pixel), channel)) continue;
    float run[ADDED];
#pragma unroll
    for (int j = 0; j < ADDED; ++j) run[j] = sums[i + j];
    finish_outputs<Y_ALONG_K>(y, OutputPixel(tile.number_of(pixel)), tile.group * Index(K_PER_GROUP) + channel, run,
                              arguments);
  }
}

// The first launch of a convolution of one class, and the second.
template <class Product, class Pixels, class Weights>
__device__ __forceinline__ void sum_parts(const TX* x, const TW* w, float* parts, const UserArguments& user,
                                          long long n) {
  if constexpr (STREAM_K) {
    const Stream stream(behind({}, streamed_tiles(n)).chunk);
    sum_share<Product, Pixels, Weights>(stream, {}, 1, parts, user, n, [&](int) { return StreamOperands{x, w}; });
  } else {
    convolve_part<Product, Pixels, Weights>(GridBlock(), x, w, parts, user, n, static_cast<int>(blockIdx.z));
  }
}
__device__ __forceinline__ void add_sums(const float* parts, TY* y, const EpilogueArguments& arguments, long long n) {
  if constexpr (STREAM_K) {
    add_slots(GridBlock(), Stream(behind({}, streamed_tiles(n)).chunk), {}, parts, y, arguments, n);
  } else {
    add_parts(GridBlock(), parts, y, arguments, n);
  }
}
