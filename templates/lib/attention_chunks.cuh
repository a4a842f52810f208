// Lines of so many elements that a block has only parts of them in shared memory: for products of lines a CHUNK of each
// at a time, two of them there; for results a SLICE of them in each block, whose scores are the same.
//
// Included behind lib/attention_chunks_block.cuh or lib/attention_chunks_tensor.cuh.
#include "lib/block_memory.cuh"

struct ChunkPair {
  LineTile<BLOCK_M, CHUNK> own;
  LineTile<BLOCK_N, CHUNK> other;
};
struct Memory {
  ChunkPair chunks[2];
  LineTile<BLOCK_N, SLICE> lines;  // that are weighted
};
static_assert(sizeof(Memory) == MEMORY_BYTES, "the launch gives what the kernel uses");

// The first `count` lines of a tensor, each from the offset that `offset_of(line)` gives. Elements are `step` apart,
// RUN_ of them in an access.
template <int RUN_, class T, class Step, class OffsetOf>
struct Lines {
  using Element = T;
  static constexpr int RUN = RUN_;

  const T* tensor;
  Step step;
  int count;
  OffsetOf offset_of;
};
template <int RUN, class T, class Step, class OffsetOf>
__device__ __forceinline__ Lines<RUN, T, Step, OffsetOf> lines_of(const T* tensor, Step step, int count,
                                                                  const OffsetOf& offset_of) {
  return {tensor, step, count, offset_of};
}

// Adds the products of a block's own lines and others, of ELEMENTS each, to scores. Ends behind a barrier: no thread
// reads the chunks any more.
template <int ELEMENTS, class Own, class Other>
__device__ __forceinline__ void add_products_of(ChunkPair (&chunks)[2], const Own& own, const Other& other,
                                                const Position& at, Scores& scores) {
  const auto bring_both = [&](int stage, int first) {
    bring(chunks[stage].own, own, first, ELEMENTS);
    bring(chunks[stage].other, other, first, ELEMENTS);
  };
  bring_both(0, 0);
  end_bringing();
#pragma unroll 1
  for (int first = 0, stage = 0; first < ELEMENTS; first += CHUNK, stage = 1 - stage) {
    if (first + CHUNK < ELEMENTS) bring_both(1 - stage, first + CHUNK);
    end_bringing();
    wait_for_lines<1>();
    __syncthreads();
    add_chunk<typename Own::Element>(chunks[stage].own, chunks[stage].other, at, scores);
    __syncthreads();
  }
}
