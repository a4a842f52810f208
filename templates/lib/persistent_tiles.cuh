// Convolution by blocks that stay: each takes TILES tiles of pixels, one after the other, with the same filters, which
// it keeps in shared memory. Copies of the next tiles' first chunks run while one is multiplied and stored. For depths
// of few chunks: a block of one tile begins and ends with waits that are as long as what it does between, and half of
// what it reads is filters.
//
//   copies           a0 a1 b0 b1    c0 c1    ...     tiles a, b, c of two chunks each
//   tensor cores           a0 a1    b0 b1    ...
//   stores                      a        b   ...
//
// From the prelude, besides what lib/conv_tile.cuh needs: TILES, those of a block. SHARED_BYTES holds STAGES chunks of
// x, all of w, and the sums on their way to memory.
#include "lib/copied_operands.cuh"
#include "lib/copy_pipeline.cuh"

// The tiles of a block: one, and next() makes the following of it.
struct PersistentTile : BlockTile {
  __device__ __forceinline__ PersistentTile(const GridBlock& block, long long n) : BlockTile(block, n) {
    first_pixel *= TILES;
  }
  __device__ __forceinline__ void next() { first_pixel += BLOCK_M; }
  // How many there are, from this one on.
  __device__ __forceinline__ int count() const {
    return static_cast<int>(smaller<Index>(TILES, ceil_div(pixels - first_pixel, Index(BLOCK_M))));
  }
};

// STAGES chunks of x, and all of w.
template <class TileA, class TileB>
class KeptFilters {
 public:
  __device__ __forceinline__ KeptFilters(unsigned pixels, unsigned filters) : pixels_(pixels), filters_(filters) {}

  __device__ __forceinline__ unsigned a() const { return stage(stage_); }
  __device__ __forceinline__ unsigned b() const { return filters_ + chunk_ * static_cast<unsigned>(sizeof(TileB)); }
  __device__ __forceinline__ unsigned stage(int i) const {
    return pixels_ + static_cast<unsigned>(i) * static_cast<unsigned>(sizeof(TileA));
  }
  __device__ __forceinline__ unsigned free() const { return stage(free_); }

  __device__ __forceinline__ void next() {
    free_ = stage_;
    stage_ = stage_ + 1 == STAGES ? 0 : stage_ + 1;
    chunk_ = chunk_ + 1 == chunks_of_filter() ? 0 : chunk_ + 1;
  }

 private:
  unsigned pixels_, filters_;
  int stage_ = 0, free_ = STAGES - 1, chunk_ = 0;
};

__device__ __forceinline__ void convolve_tiles(const GridBlock& block, const TX* x, const TW* w, TY* y,
                                               const EpilogueArguments& arguments, long long n) {
  PersistentTile tile(block, n);
  if (tile.first_pixel >= tile.pixels) return;  // another class has more
  const TensorPosition position;
  if constexpr (MULTIPLIES) {
    using PixelTile = TensorCopies::Tile<BLOCK_M, CopiedPixels>;
    using FilterTile = TensorCopies::Tile<BLOCK_N, CopiedFilters>;
    struct Memory {
      TensorSums::Exchange exchange;  // first: there for_each_run() looks for it
      PixelTile pixels[STAGES];
      FilterTile filters[chunks_of_filter()];
    };
    static_assert(sizeof(Memory) == SHARED_BYTES, "the launch asks for as much as operands and sums take");
    Memory& memory = block_memory<Memory>();

    PersistentTile copied_tile = tile;
    CopiedChunk copied(0);
    CopiedPixels pixels(x, arguments.user, copied_tile);
    const CopiedFilters filters(w, tile);
    const unsigned first_filters = shared_address(memory.filters);
    const int chunks = tile.count() * chunks_of_filter();
    int number = 0;
    const auto copy = [&](unsigned stage) {
      if (number == chunks) return;
      pixels.copy<PixelTile>(copied, stage);
      if (number < chunks_of_filter()) {
        filters.copy<FilterTile>(copied, first_filters + number * static_cast<unsigned>(sizeof(FilterTile)));
      }
      copied.next();
      if (++number % chunks_of_filter() == 0) {
        copied = CopiedChunk(0);
        copied_tile.next();
        pixels = CopiedPixels(x, arguments.user, copied_tile);
      }
    };
    using Stages = KeptFilters<PixelTile, FilterTile>;
    CopyPipeline<PixelTile, FilterTile, Stages> pipeline(Stages(shared_address(memory.pixels), first_filters),
                                                         position);
    pipeline.start(copy);
#pragma unroll 1
    for (int tiles = tile.count(); tiles > 0; --tiles, tile.next()) {
      TensorSums sums;
      pipeline.add_chunks(chunks_of_filter(), copy, sums);
      finish_tile<false>(tile, position, sums, y, arguments);
    }
  } else {
    const TensorSums zeros;
#pragma unroll 1
    for (int tiles = tile.count(); tiles > 0; --tiles, tile.next()) finish_tile(tile, position, zeros, y, arguments);
  }
}
