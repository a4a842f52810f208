// A thread block's tile of a matrix product on the f32 lanes: sums[m][n] += a[k][m] * b[k][n] over the BLOCK_K rows k
// of two operand tiles in shared memory. m < BLOCK_M, n < BLOCK_N.
//
// Every thread owns THREAD_M x THREAD_N sums: quads of 4 x 4 neighbours, so that a row costs one 16-byte access of
// shared memory per quad and operand. A warp is LANES_M x LANES_N threads; the quads of one thread lie a whole
// BLOCK_M * 4 / THREAD_M (or N) apart, so that the lanes of one access read neighbouring quads, free of conflicts.
//
// Where the grid is small, a block has SLICES such sets of threads. Each multiplies its own BLOCK_K / SLICES rows,
// which shortens the chain of work by as much, and gather_slices() adds the sums up in a fixed order.
//
// From the prelude: BLOCK_M, BLOCK_N, BLOCK_K, THREAD_M, THREAD_N, LANES_M, SLICES.
#include "lib/index.cuh"
#include "lib/vector.cuh"

constexpr int QUAD = 4;
constexpr int THREADS_M = BLOCK_M / THREAD_M;
constexpr int THREADS_N = BLOCK_N / THREAD_N;
constexpr int SLICE_THREADS = THREADS_M * THREADS_N;
constexpr int SLICE_ROWS = BLOCK_K / SLICES;
constexpr int THREADS = SLICE_THREADS * SLICES;
constexpr int LANES_N = 32 / LANES_M;
constexpr int QUAD_DISTANCE_M = BLOCK_M / (THREAD_M / QUAD);
constexpr int QUAD_DISTANCE_N = BLOCK_N / (THREAD_N / QUAD);

static_assert(THREAD_M % QUAD == 0 && THREAD_N % QUAD == 0, "a thread owns whole quads");
static_assert(BLOCK_M % THREAD_M == 0 && BLOCK_N % THREAD_N == 0, "threads tile the block");
static_assert(THREADS_M % LANES_M == 0 && THREADS_N % LANES_N == 0, "warps tile the block");
static_assert(BLOCK_K % SLICES == 0, "slices tile the rows");
static_assert(BLOCK_M % 32 == 0 && BLOCK_N % 32 == 0, "a row of a shared tile spans all banks");

// BLOCK_K rows of one operand. A thread that fills the tile stores RUN consecutive rows of one column; its warp's lanes
// first run along the rows, then along the columns. To spread those stores over the banks, rows are a quad longer than
// needed (RUN = 1), or the column is XORed with a multiple of the quad that depends on the row (RUN > 1). Quads stay
// whole, and aligned.
template <int COLUMNS, int RUN>
struct SharedTile {
  static constexpr int RUNS = BLOCK_K / RUN;
  static constexpr int PADDING = RUN == 1 ? QUAD : 0;
  static constexpr int STEP = RUN == 1 || RUNS == 1 ? 0 : RUNS == 2 ? 16 : 8;
  static_assert(BLOCK_K % RUN == 0, "runs tile the rows");

  __device__ __forceinline__ static int column_of(int row, int column) { return column ^ (row / RUN * STEP % 32); }
  __device__ __forceinline__ float& at(int row, int column) { return values[row][column_of(row, column)]; }
  __device__ __forceinline__ const float* quad(int row, int column) const {
    return &values[row][column_of(row, column)];
  }

  alignas(16) float values[BLOCK_K][COLUMNS + PADDING];
};

// Where the first quad of this thread is in the block's tile, and which rows it multiplies.
struct TilePosition {
  int m, n;
  int slice;

  __device__ __forceinline__ TilePosition() {
    const int thread = static_cast<int>(threadIdx.x) % SLICE_THREADS;
    slice = static_cast<int>(threadIdx.x) / SLICE_THREADS;
    const int warp = thread / 32, lane = thread % 32;
    constexpr int WARPS_M = THREADS_M / LANES_M;
    m = (warp % WARPS_M * LANES_M + lane % LANES_M) * QUAD;
    n = (warp / WARPS_M * LANES_N + lane / LANES_M) * QUAD;
  }
};

// The largest divisor of `rows` that unrolls enough to hide the loop and the latency of shared memory; more only costs
// registers and compile time.
__host__ __device__ constexpr int rows_to_unroll(int rows) {
  int unroll = 16;
  while (rows % unroll != 0) --unroll;
  return unroll;
}

// sums += a * b over the rows of the thread's slice.
template <class TileA, class TileB>
__device__ __forceinline__ void multiply_tiles(const TileA& a, const TileB& b, const TilePosition& position,
                                               float (&sums)[THREAD_M][THREAD_N]) {
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
        sums[m][n] = fmaf(a_quads[m / QUAD][m % QUAD], b_quads[n / QUAD][n % QUAD], sums[m][n]);
      }
    }
  }
}

// Sums of one slice on their way to slice 0.
using SliceSums = float[THREAD_M][THREAD_N][SLICES == 1 ? 1 : SLICE_THREADS];

// Adds the sums of all slices to those of slice 0, in order. `memory` is shared; nothing else may be using it.
__device__ __forceinline__ void gather_slices(SliceSums& memory, const TilePosition& position,
                                              float (&sums)[THREAD_M][THREAD_N]) {
  const int thread = static_cast<int>(threadIdx.x) % SLICE_THREADS;
#pragma unroll 1
  for (int slice = 1; slice < SLICES; ++slice) {
    __syncthreads();
#pragma unroll
    for (int m = 0; m < THREAD_M; ++m) {
#pragma unroll
      for (int n = 0; n < THREAD_N; ++n) {
        if (position.slice == slice) memory[m][n][thread] = sums[m][n];
      }
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < THREAD_M; ++m) {
#pragma unroll
      for (int n = 0; n < THREAD_N; ++n) {
        if (position.slice == 0) sums[m][n] += memory[m][n][thread];
      }
    }
  }
}
