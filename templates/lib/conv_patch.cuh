// Convolution of few channels on tensor cores (first layers), any strides: fragments are read from the input itself,
// which stands in shared memory once (lib/patch.cuh), not once for each tap.
//
// A block makes TILES tiles of TILE_P x TILE_Q outputs, one after the other, by BLOCK_N filters, which it keeps. The
// runs of a window are cut into pieces of 16 bytes, and two pieces are a step of the depth. So a lane's words of all
// fragments stand at constant distances from one place. What the last piece of a run has behind it belongs to the next
// pixel: a zero takes its place, because a zero of the filter times infinity is no zero.
//
// A lane has two neighbouring columns of each product's 8. Which filters these are is free: they are chosen so that the
// lane's columns of several products are neighbours in y, if its channels are, and go there without an exchange.
//
// From the prelude: the problem; TILES; Y_RUN and Y_ALONG_K as in lib/conv_tile.cuh; what lib/patch.cuh takes, and
// lib/tensor_tile.cuh, of which BLOCK_M is TILE_P * TILE_Q and BLOCK_K the whole depth; SHARED_BYTES.
#include "lib/block_memory.cuh"
#include "lib/conv_operands.cuh"
#include "lib/patch.cuh"
#include "lib/tensor_tile.cuh"

constexpr int RUN_PIECES = ceil_div(RUN, PIECE);
constexpr int PIECES = T * R * RUN_PIECES;  // of the depth

constexpr int N_TILES = ceil_div(K_PER_GROUP, BLOCK_N);  // of one group

static_assert(BLOCK_M == TILE_P * TILE_Q, "the rows of the product are the outputs of a tile");
static_assert(TILE_Q % 8 == 0 && (WARP_M % TILE_Q == 0 || TILE_Q % WARP_M == 0), "a warp's outputs are a rectangle");
static_assert(STEPS == ceil_div(PIECES, 2), "steps are pairs of pieces");
static_assert(!REGIONS_OF_PIXELS && !REGIONS_OF_TAPS && !IMAGES_INNER, "filters are the same everywhere");

constexpr int GROUP_N = smaller(WARP_N, 32);  // columns of products whose columns are exchanged
constexpr int LANE_N = GROUP_N / 4;           // of these, columns of a lane
static_assert(!Y_ALONG_K || LANE_N % Y_RUN == 0, "a run stays with its lane");

// The column of a warp's products that filter number `filter` of the block is.
__device__ __forceinline__ int column_of(int filter) {
  if constexpr (!Y_ALONG_K) return filter;
  const int in_group = filter % GROUP_N, in_lane = in_group % LANE_N;
  return filter - in_group + in_lane / 2 * 8 + in_group / LANE_N * 2 + in_lane % 2;
}

// The filters of a block, a line for each column, in the order of the depth. An odd number of pieces in a line: the
// same piece of eight lines lies in different banks.
struct PatchFilters {
  static constexpr int LINE = 2 * STEPS + 1;  // pieces
  static constexpr int COUNT = BLOCK_N * 2 * STEPS;

  uint4 pieces[BLOCK_N * LINE];

  __device__ __forceinline__ void fill(const TW* w, int group, int first_k) {
#pragma unroll 1
    for (int number = static_cast<int>(threadIdx.x); number < COUNT; number += THREADS) {
      const int filter = W_ALONG_K ? number % BLOCK_N : number / (2 * STEPS);
      const int piece = W_ALONG_K ? number / BLOCK_N : number % (2 * STEPS);
      const int run = piece / RUN_PIECES, t = run / R, r = run % R;
      const int in_run = piece % RUN_PIECES * PIECE;
      const bool exists = piece < PIECES && first_k + filter < K_PER_GROUP;
      const TW* const taps =
          w + (first_filter_element(static_cast<Index>(group) * K_PER_GROUP + first_k + filter) +
               (MIRRORED ? T - 1 - t : t) * Index(W_STRIDE_T) + (MIRRORED ? R - 1 - r : r) * Index(W_STRIDE_R));
      Vector<TW, PIECE> elements;
#pragma unroll
      for (int i = 0; i < PIECE; ++i) {
        const int s = (in_run + i) / PIXEL, c = (in_run + i) % PIXEL;
        const Index offset = (MIRRORED ? S - 1 - s : s) * Index(W_STRIDE_S) + c * Index(W_STRIDE_C);
        elements[i] = exists && s < S && c < C_PER_GROUP ? load_readonly<1>(taps + offset)[0] : TW{};
      }
      store<PIECE>(reinterpret_cast<TW*>(pieces + column_of(filter) * LINE + piece), elements);
    }
  }
};

// Patches take turns: one is filled while warps that are behind read the other.
template <bool EXCHANGES_SUMS>
struct PatchMemory {
  Patch patches[2];
  PatchFilters filters;
};
template <>
struct PatchMemory<true> {
  TensorSums::Exchange exchange;
  Patch patches[2];
  PatchFilters filters;
};
using Memory = PatchMemory<!Y_ALONG_K>;

// Where both pieces of each step belong to one pixel, they are read as matrices: a lane says where a piece begins.
constexpr bool READS_MATRICES = PIXEL % (2 * PIECE) == 0;

// The words of a lane in a patch and in filters, or its pieces.
class PatchReader {
 public:
  __device__ __forceinline__ PatchReader(const Memory& memory, const TensorPosition& position) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const TX* const first = memory.patches[0].elements + Patch::LEFT * PITCH + outputs(position.m);
    patch_ = first + outputs(lane / 4) + lane % 4 * WORD;
    in_run_ = lane % 4 * WORD < RUN - (RUN_PIECES - 1) * PIECE;
    matrices_ = shared_address(first + outputs(lane % 16) + lane / 16 * PIECE);
    filters_ = shared_address(memory.filters.pieces + (position.n + lane / 16 * 8 + lane % 8) * PatchFilters::LINE +
                              lane / 8 % 2);
  }

  // Goes on to the other patch.
  __device__ __forceinline__ void turn(int patch) {
    constexpr int DISTANCE = sizeof(Patch) / sizeof(TX);
    patch_ += patch == 0 ? DISTANCE : -DISTANCE;
    matrices_ += patch == 0 ? sizeof(Patch) : -sizeof(Patch);
  }

  __device__ __forceinline__ void read(Fragments& fragments, int step) const {
    if constexpr (READS_MATRICES) {
      read_matrices(fragments, step);
    } else {
      read_words(fragments, step);
    }
#pragma unroll
    for (int i = 0; i < FRAGMENTS_N; ++i) {
      load_matrices<false>(fragments.b[i],
                           filters_ + static_cast<unsigned>(16 * (2 * step + i * FRAGMENT * PatchFilters::LINE)));
    }
  }

 private:
  __device__ __forceinline__ void read_matrices(Fragments& fragments, int step) const {
    constexpr unsigned BYTES = sizeof(TX);
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) {
      const int elements = place_of(2 * step) + outputs(FRAGMENT * i);
      load_matrices<false>(fragments.a[i], matrices_ + BYTES * static_cast<unsigned>(elements));
    }
  }
  __device__ __forceinline__ void read_words(Fragments& fragments, int step) const {
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        fragments.a[i][word] = word_of(2 * step + word / 2, outputs(FRAGMENT * i + word % 2 * 8));
      }
    }
  }

  // Elements of the patch from the first output of the tile to number `output`.
  __device__ __forceinline__ static int outputs(int output) {
    return (output / TILE_Q * STRIDE_H * Patch::COLUMNS + output % TILE_Q * STRIDE_W) * PITCH;
  }

  // Elements of the patch from the first one of a window to a piece of its depth.
  __device__ __forceinline__ static int place_of(int piece) {
    const int run = piece / RUN_PIECES, in_run = piece % RUN_PIECES;
    const int row = run / R * DILATION_D * Patch::ROWS + run % R * DILATION_H;
    return row * Patch::COLUMNS * PITCH + place_in_run(in_run * PIECE);
  }

  // This lane's word of a piece, `outputs` elements behind that of its first output.
  __device__ __forceinline__ unsigned word_of(int piece, int outputs) const {
    const bool ends_a_run = piece % RUN_PIECES == RUN_PIECES - 1;
    if (piece >= PIECES || (RUN % PIECE != 0 && ends_a_run && !in_run_)) return 0;
    return *reinterpret_cast<const unsigned*>(patch_ + place_of(piece) + outputs);
  }

  const TX* patch_;
  unsigned matrices_, filters_;
  bool in_run_;  // whether this lane's word of a run's last piece is in the run
};

// Fragments are one step ahead of products.
__device__ __forceinline__ void multiply_patch(const PatchReader& reader, TensorSums& sums) {
  Fragments fragments[2];
  reader.read(fragments[0], 0);
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    if (step + 1 < STEPS) reader.read(fragments[(step + 1) % 2], step + 1);
    sums.multiply(fragments[step % 2]);
  }
}

// Calls visit(m, column, values) for the sums of a warp, in runs of Y_RUN that lie side by side in y.
template <class Visit>
__device__ __forceinline__ void for_each_run(const TensorSums& sums, const TensorPosition& position, Visit visit) {
  if constexpr (!Y_ALONG_K) {
    sums.for_each_run<false, Y_RUN>(position, visit);
  } else {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int m = 0; m < 2 * FRAGMENTS_M; ++m) {
#pragma unroll
      for (int n = 0; n < WARP_N / 4; n += Y_RUN) {
        float run[Y_RUN];
#pragma unroll
        for (int i = 0; i < Y_RUN; ++i) run[i] = sums.values[m / 2][(n + i) / 2][m % 2 * 2 + (n + i) % 2];
        visit(position.m + m * 8 + lane / 4, position.n + n / LANE_N * GROUP_N + lane % 4 * LANE_N + n % LANE_N, run);
      }
    }
  }
}

// A whole convolution, by blocks for TILES tiles of outputs each and a tile of filters of a group. The grid's x and y
// only count: blocks that run side by side share their pixels, and differ in filters.
__device__ __forceinline__ void convolve_patches(const TX* x, const TW* w, TY* y, const EpilogueArguments& arguments,
                                                 long long n) {
  static_assert(sizeof(Memory) == SHARED_BYTES, "the launch asks for as much as patches and filters take");
  Memory& memory = block_memory<Memory>();
  const unsigned number = blockIdx.y * gridDim.x + blockIdx.x;
  const int filters = static_cast<int>(number % (GROUPS * N_TILES));
  const int group = filters / N_TILES, first_k = filters % N_TILES * BLOCK_N;
  memory.filters.fill(w, group, first_k);

  const TensorPosition position;
  PatchReader reader(memory, position);
  int patch = 0;
  const Index tiles = images_of(n) * TILES_PER_IMAGE;
  const Index first = static_cast<Index>(number / (GROUPS * N_TILES)) * TILES;
#pragma unroll 1
  for (Index tile = first; tile < smaller<Index>(first + TILES, tiles); ++tile) {
    const PatchPlace place(tile);
    memory.patches[patch].fill(x, group, place);
    __syncthreads();  // it is there, and all have read the other
    TensorSums sums;
    if constexpr (MULTIPLIES) multiply_patch(reader, sums);
    reader.turn(patch);
    patch ^= 1;
    for_each_run(sums, position, [&](int m, int k, const float(&values)[Y_RUN]) {
      const Index p = place.p + m / TILE_Q, q = place.q + m % TILE_Q;
      if (p >= P || q >= Q || first_k + k >= K_PER_GROUP) return;
      finish_outputs<Y_ALONG_K>(y, OutputPixel(place.image, place.z, p, q), group * K_PER_GROUP + first_k + k, values,
                                arguments);
    });
  }
}
