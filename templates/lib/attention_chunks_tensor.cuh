// Lines of many elements on tensor cores, a part at a time: what lib/attention_chunks.cuh asks for.
#include "lib/attention_tensor.cuh"

template <int ROWS, int ELEMENTS>
using LineTile = HalfTile<ROWS, ELEMENTS / 16>;
template <int ELEMENTS>
using Sums = FragmentSums<ELEMENTS / 16>;
constexpr int NEIGHBOURS = 2;  // elements of a result side by side in a lane

// Starts to bring the elements of lines from number `first` on, of so many `elements`, zeros behind them.
template <class Tile, class Lines>
__device__ __forceinline__ void bring(Tile& tile, const Lines& lines, int first, int elements) {
  tile.template start_copies<Lines::RUN>(lines.tensor + first, elements - first, lines.count, lines.offset_of);
}
__device__ __forceinline__ void end_bringing() {
  end_group();
}
// Waits for all but the last PENDING groups: they are there behind a barrier.
template <int PENDING>
__device__ __forceinline__ void wait_for_lines() {
  wait_for_groups<PENDING>();
}

template <class T, class Own, class Other>
__device__ __forceinline__ void add_chunk(const Own& own, const Other& other, const Position& at, Scores& scores) {
  add_products<T, CHUNK / 16>(SharedRows(own, at), other, at, scores);
}

// Adds the lines of a tile, weighted by scores that are rounded to T, to sums.
template <class T, class Scratch, class Tile, class TileSums>
__device__ __forceinline__ void add_weighted(Scratch&, const Scores& weights, const Tile& tile, const Position& at,
                                             TileSums& sums) {
  sums.template add<T>(weights, tile, at);
}
