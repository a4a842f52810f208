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
static_assert(sizeof(TX) == sizeof(Factor) && sizeof(TW) == sizeof(Factor), "copies do not change what they move");

// The tiles of both operands in each stage.
template <class TileA, class TileB>
class SharedStages {
 public:
  struct Stage {
    TileA a;
    TileB b;
  };

  // `first` is the address of the first of STAGES.
  __device__ __forceinline__ explicit SharedStages(unsigned first) : first_(first) {}

  // Addresses of the tiles that are multiplied.
  __device__ __forceinline__ unsigned a() const { return first_ + stage_; }
  __device__ __forceinline__ unsigned b() const { return b_of(a()); }
  __device__ __forceinline__ static unsigned b_of(unsigned a) { return a + static_cast<unsigned>(sizeof(TileA)); }
  // Address of stage number `i`, and of the one that copies fill.
  __device__ __forceinline__ unsigned stage(int i) const { return first_ + i * BYTES; }
  __device__ __forceinline__ unsigned free() const { return first_ + free_; }

  __device__ __forceinline__ void next() {
    free_ = stage_;
    stage_ = stage_ + BYTES == END ? 0 : stage_ + BYTES;
  }

 private:
  static constexpr unsigned BYTES = sizeof(Stage), END = STAGES * BYTES;

  unsigned first_, stage_ = 0, free_ = END - BYTES;
};

// Chunks on their way through the stages. `copy(stage)` starts this thread's copies of the next chunk to the stage at
// that address, if there is a further chunk.
template <class TileA, class TileB, class Stages = SharedStages<TileA, TileB>>
class CopyPipeline {
 public:
  __device__ __forceinline__ CopyPipeline(const Stages& stages, const TensorPosition& position)
      : stages_(stages), reader_(position) {}

  // Starts the copies of the first chunks, and waits for the first one.
  template <class Copy>
  __device__ __forceinline__ void start(const Copy& copy) {
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) {
      copy(stages_.stage(i));
      end_group();
    }
    wait_for_next();
  }

  // Adds the products of the next `count` chunks.
  template <class Copy>
  __device__ __forceinline__ void add_chunks(int count, const Copy& copy, TensorSums& sums) {
    Fragments fragments[2];
    reader_.read(fragments[0], stages_.a(), stages_.b(), 0);
#pragma unroll 1
    for (int left = count; left > 0; --left) {
#pragma unroll
      for (int step = 0; step < STEPS; ++step) {
        if (step == STEPS - 1) {
          wait_for_next();
          stages_.next();
        }
        reader_.read(fragments[(step + 1) % 2], stages_.a(), stages_.b(), (step + 1) % STEPS);
        if (step == 0) {
          copy(stages_.free());
          end_group();
        }
        sums.multiply(fragments[step % 2]);
      }
    }
  }

 private:
  // Waits for the copies of a chunk, of all threads.
  __device__ __forceinline__ static void wait_for_next() {
    wait_for_groups<STAGES - 2>();
    __syncthreads();
  }

  Stages stages_;
  const FragmentReader<TileA, TileB> reader_;
};

struct TensorCopies {
  template <int COLUMNS, class Loader>
  using Tile = TensorTile<Factor, COLUMNS, Loader::DOWN>;
  template <class TileA, class TileB>
  struct Tiles {
    typename SharedStages<TileA, TileB>::Stage stages[STAGES];
  };
  using Position = TensorPosition;
  using Sums = TensorSums;

  template <class TileA, class TileB, class LoaderA, class LoaderB>
  __device__ __forceinline__ static void add_chunks(Tiles<TileA, TileB>& tiles, const LoaderA& loader_a,
                                                    const LoaderB& loader_b, int first, int last,
                                                    const Position& position, Sums& sums) {
    typename LoaderA::Chunk copied(first);
    int to_copy = last - first;
    using Stages = SharedStages<TileA, TileB>;
    const auto copy = [&](unsigned stage) {
      if (to_copy-- > 0) {
        loader_a.template copy<TileA>(copied, stage);
        loader_b.template copy<TileB>(copied, Stages::b_of(stage));
        copied.next();
      }
    };
    CopyPipeline<TileA, TileB> pipeline(Stages(shared_address(&tiles)), position);
    pipeline.start(copy);
    pipeline.add_chunks(last - first, copy, sums);
    wait_for_groups<0>();
  }
};
