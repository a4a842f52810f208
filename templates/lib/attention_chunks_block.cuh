// Lines of many elements on the lanes of a block, a part at a time: what lib/attention_chunks.cuh asks for.
#include "lib/attention_block.cuh"

template <int ROWS, int ELEMENTS>
using LineTile = FloatTile<ROWS, ELEMENTS>;
template <int ELEMENTS>
using Sums = RowSums<ELEMENTS>;
constexpr int NEIGHBOURS = 4;  // elements of a result side by side in a thread

// Brings the elements of lines from number `first` on, of so many `elements`, zeros behind them.
template <class Tile, class Lines>
__device__ __forceinline__ void bring(Tile& tile, const Lines& lines, int first, int elements) {
  tile.template load<Lines::RUN>(lines.tensor + first * Index(lines.step), lines.step, lines.count, lines.offset_of,
                                 elements - first);
}
// Lines that were brought are there behind a barrier.
__device__ __forceinline__ void end_bringing() {}
template <int PENDING>
__device__ __forceinline__ void wait_for_lines() {}

template <class T, class Own, class Other>
__device__ __forceinline__ void add_chunk(const Own& own, const Other& other, const Position& at, Scores& scores) {
  add_products(own, other, at, scores);
}

// Adds the lines of a tile, weighted, to sums. Nothing may read `scratch` any more.
template <class T, class Scratch, class Tile, class TileSums>
__device__ __forceinline__ void add_weighted(Scratch& scratch, Scores& weights, const Tile& tile, const Position& at,
                                             TileSums& sums) {
  static_assert(sizeof(Scratch) >= sizeof(WeightTile), "weights fit in there");
  WeightTile& kept = reinterpret_cast<WeightTile&>(scratch);
  keep_weights(kept, at, weights);
  __syncthreads();
  sums.add(kept, tile, at);
}
