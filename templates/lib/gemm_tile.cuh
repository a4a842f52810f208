// The product of lib/conv_tile.cuh on the f32 lanes: sums[m][n] += a[k][m] * b[k][n] over the BLOCK_K rows k of two
// operand tiles in shared memory, both f32. m < BLOCK_M, n < BLOCK_N.
//
// Every thread owns THREAD_M x THREAD_N sums: quads of 4 x 4 neighbours, so that a row costs one 16-byte access of
// shared memory per quad and operand. A warp is LANES_M x LANES_N threads; the quads of one thread lie a whole
// BLOCK_M * 4 / THREAD_M (or N) apart, so that the lanes of one access read neighbouring quads, free of conflicts.
//
// Where the grid is small, a block has SLICES such sets of threads. Each multiplies its own BLOCK_K / SLICES rows,
// which shortens the chain of work by as much, and gather() adds the sums up in a fixed order.
//
// From the prelude: BLOCK_M, BLOCK_N, BLOCK_K, THREADS, THREAD_M, THREAD_N, LANES_M, SLICES, STAGES.
#include "lib/block_memory.cuh"
#include "lib/index.cuh"
#include "lib/register_pipeline.cuh"
#include "lib/vector.cuh"

constexpr int QUAD = 4;
constexpr int THREADS_M = BLOCK_M / THREAD_M;
constexpr int THREADS_N = BLOCK_N / THREAD_N;
constexpr int SLICE_THREADS = THREADS_M * THREADS_N;
constexpr int SLICE_ROWS = BLOCK_K / SLICES;
constexpr int LANES_N = 32 / LANES_M;
constexpr int QUAD_DISTANCE_M = BLOCK_M / (THREAD_M / QUAD);
constexpr int QUAD_DISTANCE_N = BLOCK_N / (THREAD_N / QUAD);

static_assert(THREAD_M % QUAD == 0 && THREAD_N % QUAD == 0, "a thread owns whole quads");
static_assert(BLOCK_M % THREAD_M == 0 && BLOCK_N % THREAD_N == 0, "threads tile the block");
static_assert(THREADS == SLICE_THREADS * SLICES, "the threads of a block are those of its slices");
static_assert(THREADS_M % LANES_M == 0 && THREADS_N % LANES_N == 0, "warps tile the block");
static_assert(BLOCK_K % SLICES == 0, "slices tile the rows");
static_assert(BLOCK_M % 32 == 0 && BLOCK_N % 32 == 0, "a row of a shared tile spans all banks");

// BLOCK_K rows of one operand. A thread that fills the tile stores RUN consecutive rows of one column; its warp's lanes
// first run along the rows, then along the columns. To spread those stores over the banks, rows are a quad longer than
// needed (RUN = 1), or the column is XORed with a multiple of the quad that depends on the row (RUN > 1). Quads stay
// whole, and aligned. Stores along the rows need neither: for them RUN is BLOCK_K.
template <int COLUMNS, int RUN>
struct LaneTile {
  using Element = float;

  static constexpr int RUNS = BLOCK_K / RUN;
  static constexpr int PADDING = RUN == 1 ? QUAD : 0;
  static constexpr int STEP = RUN == 1 || RUNS == 1 ? 0 : RUNS == 2 ? 16 : 8;
  static_assert(BLOCK_K % RUN == 0, "runs tile the rows");

  __device__ __forceinline__ static int column_of(int row, int column) { return column ^ (row / RUN * STEP % 32); }
  __device__ __forceinline__ const float* quad(int row, int column) const {
    return &values[row][column_of(row, column)];
  }

  // Stores neighbours from (row, column) on, down the column or along the row.
  template <int COUNT>
  __device__ __forceinline__ void put_down(int row, int column, const Vector<float, COUNT>& run) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) values[row + i][column_of(row + i, column)] = run[i];
  }
  template <int COUNT>
  __device__ __forceinline__ void put_along(int row, int column, const Vector<float, COUNT>& run) {
    static_assert(STEP == 0 && PADDING == 0, "neighbours in a row stand side by side, and aligned");
    store<COUNT>(&values[row][column], run);
  }

  alignas(16) float values[BLOCK_K][COLUMNS + PADDING];
};

// The largest divisor of `rows` that unrolls enough to hide the loop and the latency of shared memory; more only costs
// registers and compile time.
__host__ __device__ constexpr int rows_to_unroll(int rows) {
  int unroll = 16;
  while (rows % unroll != 0) --unroll;
  return unroll;
}

// Where the first sum of this thread is in the block's tile, and which rows it multiplies. No part of LaneSums: the
// compiler takes an array apart when loops are unrolled, too late to simplify what depends on its neighbours.
struct LanePosition {
  int m, n;
  int slice;

  __device__ __forceinline__ LanePosition() {
    const int thread = static_cast<int>(threadIdx.x) % SLICE_THREADS;
    slice = static_cast<int>(threadIdx.x) / SLICE_THREADS;
    const int warp = thread / 32, lane = thread % 32;
    constexpr int WARPS_M = THREADS_M / LANES_M;
    m = (warp % WARPS_M * LANES_M + lane % LANES_M) * QUAD;
    n = (warp / WARPS_M * LANES_N + lane / LANES_M) * QUAD;
  }

  // Whether the thread has sums of the block after gather().
  __device__ __forceinline__ bool has_sums() const { return SLICES == 1 || slice == 0; }
};

// The sums of one thread, zero at first.
struct LaneSums {
  static constexpr bool IN_FRAGMENTS = false;
  // How many there are along m and n: neighbours in the block's tile, then the next so many DISTANCE further on.
  static constexpr int COUNT_M = THREAD_M, NEIGHBOURS_M = QUAD, DISTANCE_M = QUAD_DISTANCE_M;
  static constexpr int COUNT_N = THREAD_N, NEIGHBOURS_N = QUAD, DISTANCE_N = QUAD_DISTANCE_N;

  float values[THREAD_M][THREAD_N] = {};

  // Adds a * b over the rows of the thread's slice.
  template <class TileA, class TileB>
  __device__ __forceinline__ void add_product(const TileA& a, const TileB& b, const LanePosition& position) {
    const int first_row = SLICES == 1 ? 0 : position.slice * SLICE_ROWS;
    constexpr int UNROLL = rows_to_unroll(SLICE_ROWS);
#pragma unroll UNROLL
    for (int i = 0; i < SLICE_ROWS; ++i) {
      const int row = first_row + i;
      Vector<float, QUAD> a_quads[THREAD_M / QUAD], b_quads[THREAD_N / QUAD];
#pragma unroll
      for (int m = 0; m < THREAD_M / QUAD; ++m) a_quads[m] = load<QUAD>(a.quad(row, position.m + m * QUAD_DISTANCE_M));
#pragma unroll
      for (int n = 0; n < THREAD_N / QUAD; ++n) b_quads[n] = load<QUAD>(b.quad(row, position.n + n * QUAD_DISTANCE_N));
#pragma unroll
      for (int m = 0; m < THREAD_M; ++m) {
#pragma unroll
        for (int n = 0; n < THREAD_N; ++n) {
          values[m][n] = fmaf(a_quads[m / QUAD][m % QUAD], b_quads[n / QUAD][n % QUAD], values[m][n]);
        }
      }
    }
  }

  // Sums of one slice on their way to slice 0.
  using Exchange = float[THREAD_M][THREAD_N][SLICES == 1 ? 1 : SLICE_THREADS];

  // Adds the sums of all slices to those of slice 0, in order. `memory` is shared; the tiles may be in it until now.
  __device__ __forceinline__ void gather(Exchange& memory, const LanePosition& position) {
    const int thread = static_cast<int>(threadIdx.x) % SLICE_THREADS;
#pragma unroll 1
    for (int slice = 1; slice < SLICES; ++slice) {
      __syncthreads();
#pragma unroll
      for (int m = 0; m < THREAD_M; ++m) {
#pragma unroll
        for (int n = 0; n < THREAD_N; ++n) {
          if (position.slice == slice) memory[m][n][thread] = values[m][n];
        }
      }
      __syncthreads();
#pragma unroll
      for (int m = 0; m < THREAD_M; ++m) {
#pragma unroll
        for (int n = 0; n < THREAD_N; ++n) {
          if (position.slice == 0) values[m][n] += memory[m][n][thread];
        }
      }
    }
  }
};

// The Product of lib/conv_tile.cuh.
struct F32Lanes {
  template <int COLUMNS, class Loader>
  using Tile = LaneTile<COLUMNS, Loader::DOWN ? Loader::RUN : BLOCK_K>;
  template <class TileA, class TileB>
  using Tiles = StagesOfTiles<TileA, TileB>;
  using Position = LanePosition;
  using Sums = LaneSums;

  template <class TileA, class TileB, class LoaderA, class LoaderB>
  __device__ __forceinline__ static void add_chunks(Tiles<TileA, TileB>& tiles, const LoaderA& a, const LoaderB& b,
                                                    int first, int last, const Position& position, Sums& sums) {
    RegisterPipeline::for_each_chunk(tiles, a, b, first, last, [&](const TileA& tile_a, const TileB& tile_b) {
      sums.add_product(tile_a, tile_b, position);
    });
  }
};
