// Winograd's minimal filtering in one kernel behind the transform of the filters: a block computes BLOCK_TILES tiles in
// BLOCK_N channels of y. For BLOCK_C channels of x at a time it transforms the patches into shared memory, beside the
// filters, and multiplies, one product of matrices a position: sums[position][tile][k] += inputs[c][tile] *
// filters[c][k]. Then the sums of all positions of a tile meet in shared memory, and are transformed and finished.
//
// A warp has WARP_POSITIONS positions, and of each all tiles and channels: LANES_M x LANES_N lanes of THREAD_M x
// THREAD_N sums in quads, as in lib/gemm_tile.cuh.
//
// From the prelude, besides that of lib/winograd_tiles.cuh: BLOCK_TILES, BLOCK_N, BLOCK_C, WARP_POSITIONS, LANES_M.
#include "lib/winograd_tiles.cuh"

constexpr int QUAD = 4;
constexpr int THREADS = POSITIONS / WARP_POSITIONS * 32;
constexpr int LANES_N = 32 / LANES_M;
constexpr int THREAD_M = BLOCK_TILES / LANES_M, THREAD_N = BLOCK_N / LANES_N;
constexpr int CHUNKS = FILTER_C / BLOCK_C;
constexpr int N_TILES = FILTER_K / BLOCK_N;  // of one group

static_assert(POSITIONS % WARP_POSITIONS == 0, "warps share the positions out");
static_assert(THREAD_M % QUAD == 0 && THREAD_N % QUAD == 0, "a thread owns whole quads");
static_assert(FILTER_C % BLOCK_C == 0 && FILTER_K % BLOCK_N == 0 && !FILTER_C_INNER,
              "filters are there for all blocks");

// A chunk of BLOCK_C channels. Where lanes run along the channels, rows of tiles are a quad longer, to spread stores
// over the banks.
constexpr int INPUT_PITCH = BLOCK_TILES + (CHANNELS_INNER ? QUAD : 0);
struct Chunk {
  alignas(16) float inputs[POSITIONS][BLOCK_C][INPUT_PITCH];
  alignas(16) float filters[POSITIONS][BLOCK_C][BLOCK_N];
};

// Sums on their way to the threads that transform them: of FULL tiles (or channels, if Y_ALONG_K: what is next to each
// other in y) and some of the others at a time: PASS of each thread's, as many as the chunk's memory holds.
constexpr int FULL = Y_ALONG_K ? BLOCK_N : BLOCK_TILES;
constexpr int FULL_PITCH = FULL + (Y_ALONG_K ? QUAD : 0);
constexpr int SUB_LANES = Y_ALONG_K ? LANES_M : LANES_N;
constexpr int SUB_SUMS = Y_ALONG_K ? THREAD_M : THREAD_N;  // of a thread
__host__ __device__ constexpr int sums_of_a_pass() {
  int pass = QUAD;
  while (pass > 1 && POSITIONS * SUB_LANES * pass * FULL_PITCH * sizeof(float) > sizeof(Chunk)) pass /= 2;
  return pass;
}
constexpr int PASS = sums_of_a_pass();
constexpr int SUB = SUB_LANES * PASS;
using Exchange = float[POSITIONS][SUB][FULL_PITCH];

// Positions, tiles and channels of this thread.
struct FusedPosition {
  int warp_position;   // the first of its positions
  int lane_m, lane_n;  // quads of tiles and channels

  __device__ __forceinline__ FusedPosition() {
    const int thread = static_cast<int>(threadIdx.x);
    warp_position = thread / 32 * WARP_POSITIONS;
    lane_m = thread % 32 % LANES_M;
    lane_n = thread % 32 / LANES_M;
  }
};

using FusedSums = float[WARP_POSITIONS][THREAD_M][THREAD_N];

// Patches on their way to a chunk: each thread keeps to its tiles.
class Patches {
 public:
  __device__ __forceinline__ Patches(const TX* x, const UserArguments& user, Index first_tile, Index tiles, int group)
      : x_(x), user_(user), first_channel_(group * C_PER_GROUP) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const Index tile = first_tile + tile_of(i);
      places_[i] = TilePlace(tile, (COUNT * THREADS == ITEMS || number(i) < ITEMS) && tile < tiles);
    }
  }

  __device__ __forceinline__ void fill(int chunk, Chunk& to) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (COUNT * THREADS != ITEMS && number(i) >= ITEMS) continue;
      const int c = chunk * BLOCK_C + channel_of(i);
      float patch[PATCH][PATCH], transformed[PATCH][PATCH];
      load_patch(x_, places_[i], first_channel_ + c, C_PER_GROUP % BLOCK_C == 0 || c < C_PER_GROUP, user_, patch);
      transform_input<TILE>(patch, transformed);
#pragma unroll
      for (int position = 0; position < POSITIONS; ++position) {
        to.inputs[position][channel_of(i)][tile_of(i)] = transformed[position / PATCH][position % PATCH];
      }
    }
  }

 private:
  static constexpr int ITEMS = BLOCK_TILES * BLOCK_C;
  static constexpr int COUNT = ceil_div(ITEMS, THREADS);

  __device__ __forceinline__ static int number(int i) {
    return static_cast<int>(threadIdx.x) + i * THREADS;
  }
  __device__ __forceinline__ static int tile_of(int i) {
    return CHANNELS_INNER ? number(i) / BLOCK_C : number(i) % BLOCK_TILES;
  }
  __device__ __forceinline__ static int channel_of(int i) {
    return CHANNELS_INNER ? number(i) % BLOCK_C : number(i) / BLOCK_TILES;
  }

  const TX* x_;
  const UserArguments& user_;
  int first_channel_;
  TilePlace places_[COUNT];
};

// Transformed filters of a chunk: rows of BLOCK_N channels of y from `first` on.
__device__ __forceinline__ void fill_filters(const float* first, int chunk, Chunk& to) {
  constexpr int ROW = BLOCK_N / QUAD, QUADS = POSITIONS * BLOCK_C * ROW;
  constexpr Index POSITION_STRIDE = Index(GROUPS) * FILTER_C * FILTER_K;
  // Two loads on their way at a time: sums and patches leave registers for no more.
#pragma unroll 2
  for (int i = 0; i < ceil_div(QUADS, THREADS); ++i) {
    const int number = static_cast<int>(threadIdx.x) + i * THREADS;
    if (QUADS % THREADS != 0 && number >= QUADS) continue;
    const int k = number % ROW * QUAD, c = number / ROW % BLOCK_C, position = number / (ROW * BLOCK_C);
    const float* const from = first + (position * POSITION_STRIDE + (Index(chunk) * BLOCK_C + c) * FILTER_K + k);
    store<QUAD>(&to.filters[position][c][k], load_readonly<QUAD>(from));
  }
}

__device__ __forceinline__ void multiply_chunk(const Chunk& chunk, const FusedPosition& place, FusedSums& sums) {
#pragma unroll
  for (int p = 0; p < WARP_POSITIONS; ++p) {
    const int position = place.warp_position + p;
#pragma unroll
    for (int c = 0; c < BLOCK_C; ++c) {
      Vector<float, QUAD> inputs[THREAD_M / QUAD], filters[THREAD_N / QUAD];
#pragma unroll
      for (int m = 0; m < THREAD_M / QUAD; ++m) {
        inputs[m] = load<QUAD>(&chunk.inputs[position][c][(m * LANES_M + place.lane_m) * QUAD]);
      }
#pragma unroll
      for (int n = 0; n < THREAD_N / QUAD; ++n) {
        filters[n] = load<QUAD>(&chunk.filters[position][c][(n * LANES_N + place.lane_n) * QUAD]);
      }
#pragma unroll
      for (int m = 0; m < THREAD_M; ++m) {
#pragma unroll
        for (int n = 0; n < THREAD_N; ++n) {
          sums[p][m][n] = fmaf(inputs[m / QUAD][m % QUAD], filters[n / QUAD][n % QUAD], sums[p][m][n]);
        }
      }
    }
  }
}

// Stores what pass number `pass` takes of the thread's sums.
__device__ __forceinline__ void hand_over(const FusedSums& sums, int pass, const FusedPosition& place, Exchange& to) {
  const int sub_lane = Y_ALONG_K ? place.lane_m : place.lane_n, full_lane = Y_ALONG_K ? place.lane_n : place.lane_m;
  constexpr int FULL_LANES = 32 / SUB_LANES;
#pragma unroll
  for (int p = 0; p < WARP_POSITIONS; ++p) {
#pragma unroll
    for (int s = 0; s < SUB_SUMS; ++s) {
      if (s / PASS != pass) continue;
#pragma unroll
      for (int f = 0; f < FULL / FULL_LANES; f += QUAD) {
        Vector<float, QUAD> quad;
#pragma unroll
        for (int i = 0; i < QUAD; ++i) {
          if constexpr (Y_ALONG_K) quad[i] = sums[p][s][f + i];
          if constexpr (!Y_ALONG_K) quad[i] = sums[p][f + i][s];
        }
        store<QUAD>(&to[place.warp_position + p][sub_lane * PASS + s % PASS][f * FULL_LANES + full_lane * QUAD], quad);
      }
    }
  }
}

// A whole convolution. `filters` are transformed.
__device__ __forceinline__ void convolve_fused(const TX* x, const float* filters, TY* y,
                                               const EpilogueArguments& arguments, long long n) {
  __shared__ union {
    Chunk chunk;
    Exchange exchange;
  } memory;
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;  // those side by side share their tiles
  const int block_of_channels = static_cast<int>(block % (GROUPS * N_TILES));
  const int group = block_of_channels / N_TILES, first_k = block_of_channels % N_TILES * BLOCK_N;
  const Index first_tile = static_cast<Index>(block / (GROUPS * N_TILES)) * BLOCK_TILES;
  const Index tiles = images_of(n) * TILES_PER_IMAGE;

  const FusedPosition place;
  const Patches patches(x, arguments.user, first_tile, tiles, group);
  const float* const first_filter = filters + (Index(group) * FILTER_C * FILTER_K + first_k);
  FusedSums sums = {};
#pragma unroll 1
  for (int chunk = 0; chunk < CHUNKS; ++chunk) {
    if (chunk > 0) __syncthreads();
    fill_filters(first_filter, chunk, memory.chunk);
    patches.fill(chunk, memory.chunk);
    __syncthreads();
    multiply_chunk(memory.chunk, place, sums);
  }

#pragma unroll 1
  for (int pass = 0; pass < SUB_SUMS / PASS; ++pass) {
    __syncthreads();
    hand_over(sums, pass, place, memory.exchange);
    __syncthreads();
    for (int item = static_cast<int>(threadIdx.x); item < SUB * FULL; item += THREADS) {
      const int full = item % FULL, sub = item / FULL;
      const int s = pass * PASS + sub % PASS;
      const int other = (s / QUAD * SUB_LANES + sub / PASS) * QUAD + s % QUAD;
      const Index tile = first_tile + (Y_ALONG_K ? other : full);
      const int k = first_k + (Y_ALONG_K ? full : other);
      if (tile >= tiles || (K_PER_GROUP % BLOCK_N != 0 && k >= K_PER_GROUP)) continue;
      float of_tile[PATCH][PATCH];
#pragma unroll
      for (int position = 0; position < POSITIONS; ++position) {
        of_tile[position / PATCH][position % PATCH] = memory.exchange[position][sub][full];
      }
      finish_tile(y, TilePlace(tile, true), group * K_PER_GROUP + k, of_tile, arguments);
    }
  }
}
