// Chunks of the depth of all tiles, one tile after the other, in a row that the blocks of a grid share evenly, wherever
// a tile ends: "stream-K" (Osama et al., Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
// Multiplication on the GPU, 2023), in two launches.
//
//   tiles     |. . . . . . . .|. . . . . . . .|. . . . . . . .|     8 chunks each
//   blocks    |0         |1         |2         |3         |4  |     5 or 4 chunks each
//   slots     |0         |1   |2    |3     |4  |5         |6  |     number of the block + number of the tile
//
// A block leaves the sums of each tile that it meets in a slot of its own. From one meeting of a block and a tile to
// the next, one of the two numbers grows, or both do: no two meetings have the same slot. A second launch adds the
// slots of each tile in the order of the depth. So no block waits for another, and sums do not depend on the device.
//
// From the prelude: BLOCKS, those of the first launch.
#include "lib/index.cuh"

class Stream {
 public:
  __device__ __forceinline__ explicit Stream(unsigned chunks) : whole_(chunks / COUNT), rest_(chunks % COUNT) {}

  // Number of the first chunk of a block.
  __device__ __forceinline__ unsigned first_of(unsigned block) const { return block * whole_ + smaller(block, rest_); }
  // Number of the block that has a chunk.
  __device__ __forceinline__ unsigned block_of(unsigned chunk) const {
    const unsigned longer = rest_ * (whole_ + 1);  // chunks of the blocks that have one more
    return chunk < longer ? chunk / (whole_ + 1) : rest_ + (chunk - longer) / whole_;
  }

 private:
  static constexpr unsigned COUNT = larger(BLOCKS, 1);

  unsigned whole_, rest_;
};

// Numbers of the first tile and the first chunk of a class, or of a product, in the row.
struct StreamPlace {
  unsigned tile = 0, chunk = 0;
};
