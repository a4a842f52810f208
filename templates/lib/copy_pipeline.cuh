// The Product of lib/conv_tile.cuh on tensor cores whose operands are copied to shared memory asynchronously, STAGES -
// 1 chunks ahead of the one that is multiplied.
//
// A loader (lib/copied_operands.cuh, lib/copied_gradient.cuh) has the type Chunk, made of a chunk's number, which
// next() moves on; and copy(chunk, address), which starts this thread's copies of a chunk to the tile at `address`.
//
//   step             0                1   (BLOCK_K 32)
//   fragments        read step 1      wait for the next chunk; all warps meet; read its step 0
//   copies           start chunk + STAGES - 1
//   tensor cores     step 0           step 1
//
// The stage that copies fill was read last in the chunk before, ahead of the meeting in its last step.
#include "lib/copies.cuh"
#include "lib/tensor_tile.cuh"

static_assert(STAGES >= 2, "one chunk is multiplied while another is copied");
static_assert(STEPS >= 2, "copies start between the steps of a chunk");

struct TensorCopies {
  template <int COLUMNS, class Loader>
  using Tile = TensorTile<TX, COLUMNS, Loader::DOWN>;
  template <class TileA, class TileB>
  struct Stage {
    TileA a;
    TileB b;
  };
  template <class TileA, class TileB>
  struct Tiles {
    Stage<TileA, TileB> stages[STAGES];
  };
  using Position = TensorPosition;
  using Sums = TensorSums;

  template <class TileA, class TileB, class LoaderA, class LoaderB>
  __device__ __forceinline__ static void add_chunks(Tiles<TileA, TileB>& tiles, const LoaderA& loader_a,
                                                    const LoaderB& loader_b, int first, int last,
                                                    const Position& position, Sums& sums) {
    constexpr unsigned STAGE_BYTES = sizeof(Stage<TileA, TileB>), END = STAGES * STAGE_BYTES;
    const unsigned start = shared_address(&tiles);
    typename LoaderA::Chunk copied(first);
    int to_copy = last - first;
    const auto copy = [&](unsigned stage) {
      if (to_copy-- > 0) {
        loader_a.template copy<TileA>(copied, start + stage);
        loader_b.template copy<TileB>(copied, start + stage + static_cast<unsigned>(sizeof(TileA)));
        copied.next();
      }
      end_group();
    };
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) copy(i * STAGE_BYTES);

    const FragmentReader<TileA, TileB> reader(position);
    Fragments fragments[2];
    unsigned stage = 0, free_stage = END - STAGE_BYTES;
    const auto read = [&](Fragments& to, int step) {
      reader.read(to, start + stage, start + stage + static_cast<unsigned>(sizeof(TileA)), step);
    };
    wait_for_groups<STAGES - 2>();
    __syncthreads();
    read(fragments[0], 0);
#pragma unroll 1
    for (int left = last - first; left > 0; --left) {
#pragma unroll
      for (int step = 0; step < STEPS; ++step) {
        if (step == STEPS - 1) {
          wait_for_groups<STAGES - 2>();
          __syncthreads();
          free_stage = stage;
          stage = stage + STAGE_BYTES == END ? 0 : stage + STAGE_BYTES;
        }
        read(fragments[(step + 1) % 2], (step + 1) % STEPS);
        if (step == 0) copy(free_stage);
        sums.multiply(fragments[step % 2]);
      }
    }
    wait_for_groups<0>();
  }
};
