// Chunks of two operands on their way from global memory through registers, where they become what the tiles hold, to
// shared memory: loads of the next chunk are under way while one is multiplied.
//
// A loader says where the elements of a chunk are and where they belong, and a pipeline brings them there. A thread
// moves COUNT runs of RUN neighbours each, which go down a column of the tile if DOWN, else along a row. A loader has
// - fetch(chunk, runs), which calls runs.fetch_run(*this, i, exists, at, address) for run number i of a chunk: it is at
//   address() if it exists, else zero. An address that is kept from chunk to chunk would take two registers;
// - load_run(address, at), the run as registers keep it: elements of type Kept. `at`: where a prologue meets it;
// - row(i) and column(i) of its first element in the tile, and is_in_tile(i): the last threads may have fewer runs.
//
// From the prelude: STAGES, the tiles of each operand in shared memory: one, or two by turns.
#include "lib/vector.cuh"

template <class To, class From>
struct Conversion {
  __device__ __forceinline__ static To of(From value) { return from_float<To>(to_float(value)); }
};
template <class T>
struct Conversion<T, T> {
  __device__ __forceinline__ static T of(T value) { return value; }
};

// The runs of one chunk between fetch() and stash().
template <class Loader>
class RunsInRegisters {
 public:
  // Starts loading chunk number `chunk`.
  __device__ __forceinline__ void fetch(const Loader& loader, int chunk) { loader.fetch(chunk, *this); }

  // Run number `i` of it, as the loader tells.
  template <class At, class Address>
  __device__ __forceinline__ void fetch_run(const Loader& loader, int i, bool exists, At at, Address address) {
    runs_[i] = exists ? loader.load_run(address(), at) : zeros<typename Loader::Kept, Loader::RUN>();
  }

  // Stores the chunk that fetch() loaded.
  template <class Tile>
  __device__ __forceinline__ void stash(const Loader& loader, Tile& tile) const {
#pragma unroll
    for (int i = 0; i < Loader::COUNT; ++i) {
      if (!loader.is_in_tile(i)) continue;
      Vector<typename Tile::Element, Loader::RUN> run;
#pragma unroll
      for (int j = 0; j < Loader::RUN; ++j) {
        run[j] = Conversion<typename Tile::Element, typename Loader::Kept>::of(runs_[i][j]);
      }
      if constexpr (Loader::DOWN) {
        tile.put_down(loader.row(i), loader.column(i), run);
      } else {
        tile.put_along(loader.row(i), loader.column(i), run);
      }
    }
  }

 private:
  Vector<typename Loader::Kept, Loader::RUN> runs_[Loader::COUNT];
};

// The tiles of both operands.
template <class TileA, class TileB>
struct StagesOfTiles {
  TileA a[STAGES];
  TileB b[STAGES];
};

struct RegisterPipeline {
  static_assert(STAGES == 1 || STAGES == 2, "one chunk is on its way at a time");

  // Calls multiply(tile of a, tile of b) for each of the chunks [first, last), in order.
  template <class TileA, class TileB, class LoaderA, class LoaderB, class Multiply>
  __device__ __forceinline__ static void for_each_chunk(StagesOfTiles<TileA, TileB>& tiles, const LoaderA& loader_a,
                                                        const LoaderB& loader_b, int first, int last,
                                                        Multiply multiply) {
    RunsInRegisters<LoaderA> a;
    RunsInRegisters<LoaderB> b;
    a.fetch(loader_a, first);
    b.fetch(loader_b, first);
    a.stash(loader_a, tiles.a[0]);
    b.stash(loader_b, tiles.b[0]);
    __syncthreads();
    int stage = 0;
    for (int chunk = first; chunk < last; ++chunk) {
      const bool more = chunk + 1 < last;
      if (more) {
        a.fetch(loader_a, chunk + 1);
        b.fetch(loader_b, chunk + 1);
      }
      multiply(tiles.a[stage], tiles.b[stage]);
      if (!more) break;
      if constexpr (STAGES == 1) __syncthreads();
      if constexpr (STAGES == 2) stage ^= 1;
      a.stash(loader_a, tiles.a[stage]);
      b.stash(loader_b, tiles.b[stage]);
      __syncthreads();
    }
  }
};
