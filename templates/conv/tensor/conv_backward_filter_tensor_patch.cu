// Gradient of a convolution by its filter on tensor cores, where groups have few channels of x (first layers): f16,
// bf16 and tf32, any strides.
//
// The product has a row for each filter, a column for each element of a window's runs (lib/patch.cuh), and positions of
// dy as its depth:
//
//   dw[k][run, element] = sum over outputs of dy[output][k] * patch[run of the output, element]
//
// A block keeps BLOCK_M x BLOCK_N sums in registers while it goes through SPLIT-th parts of the tiles of TILE_P x
// TILE_Q outputs. For each it stages dy and the patch. A step of the depth is a row of the tile. Columns are read from
// the patch itself, at constant distances from a lane's first word: of 16-bit types a word has two neighbouring columns
// of one output, and those of two outputs are exchanged into a fragment of even columns and one of odd ones. Columns
// behind a run are summed too, and left.
//
// parts: [SPLIT][K][COLUMNS] f32. A second kernel adds them in a fixed order.
// Parameters: conv_backward_filter_tensor_patch.cpp.
#include "lib/block_memory.cuh"
#include "lib/images.cuh"
#include "lib/index.cuh"
#include "lib/patch.cuh"
#include "lib/store.cuh"

using TW = TDY;  // the other operand of lib/tensor_tile.cuh
#include "lib/tensor_tile.cuh"

constexpr int RUN_COLUMNS = ceil_div(RUN, FRAGMENT) * FRAGMENT;
constexpr int COLUMNS = T * R * RUN_COLUMNS;
constexpr int FILTER_TILES = ceil_div(K_PER_GROUP, BLOCK_M);  // of one group
constexpr int TAPS = T * R * S;

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_backward_filter_simple");
static_assert(TILE_Q == STEP_DEPTH && TILE_P == STEPS, "a step is a row of the tile");

// dy of a tile, BLOCK_M filters from first_k on; zeros for what does not exist.
struct Gradients {
  using Tile = TensorTile<TDY, BLOCK_M, !DY_ALONG_K>;
  static constexpr int RUNS_IN_LINE = (DY_ALONG_K ? BLOCK_M : BLOCK_K) / DY_RUN;
  static constexpr int RUNS = BLOCK_M * BLOCK_K / DY_RUN;
  static constexpr int COUNT = ceil_div(RUNS, THREADS);  // of a thread
  static constexpr int AT_ONCE = smaller(COUNT, 8);      // loaded before they are stored

  Tile tile;

  __device__ __forceinline__ void fill(const TDY* dy, int group, int first_k, const PatchPlace& place) {
#pragma unroll 1
    for (int first = 0; first < COUNT; first += AT_ONCE) {
      Vector<TDY, DY_RUN> runs[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        const Index k = first_k + filter(first + i), p = place.p + output(first + i) / TILE_Q,
                    q = place.q + output(first + i) % TILE_Q;
        const bool exists = is_in_tile(first + i) && k < K_PER_GROUP && p < P && q < Q;
        const Index offset = place.image * Index(DY_STRIDE_N) + (group * Index(K_PER_GROUP) + k) * Index(DY_STRIDE_K) +
                             place.z * Index(DY_STRIDE_Z) + p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q);
        runs[i] = zeros<TDY, DY_RUN>();
        if (exists) runs[i] = load_readonly<DY_RUN>(element_at(dy, offset));
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        if (!is_in_tile(first + i)) continue;
        if constexpr (DY_ALONG_K) {
          tile.put_along(output(first + i), filter(first + i), runs[i]);
        } else {
          tile.put_down(output(first + i), filter(first + i), runs[i]);
        }
      }
    }
  }

 private:
  __device__ __forceinline__ static int number_of(int i) {
    return static_cast<int>(threadIdx.x) + i * THREADS;
  }
  __device__ __forceinline__ static bool is_in_tile(int i) {
    return RUNS % (THREADS * AT_ONCE) == 0 || number_of(i) < RUNS;
  }
  __device__ __forceinline__ static int filter(int i) {
    return DY_ALONG_K ? number_of(i) % RUNS_IN_LINE * DY_RUN : number_of(i) / RUNS_IN_LINE;
  }
  __device__ __forceinline__ static int output(int i) {
    return DY_ALONG_K ? number_of(i) / RUNS_IN_LINE : number_of(i) % RUNS_IN_LINE * DY_RUN;
  }
};

struct GradientMemory {
  Patch patch;
  TX behind[RUN_COLUMNS - RUN + WORD];  // zeros that the columns behind the last run read
  Gradients gradients;

  __device__ __forceinline__ void begin() {
    constexpr int ZEROS = (sizeof(Patch) - Patch::ELEMENTS * sizeof(TX) + sizeof(behind)) / 4;
    unsigned* const first = reinterpret_cast<unsigned*>(patch.elements + Patch::ELEMENTS);
    for (int i = static_cast<int>(threadIdx.x); i < ZEROS; i += THREADS) first[i] = 0;
  }
};

// The fragments of a warp.
class GradientReader {
 public:
  __device__ __forceinline__ GradientReader(const GradientMemory& memory, const TensorPosition& position,
                                            int first_column)
      : gradients_(position.m), tile_(shared_address(&memory.gradients.tile)) {
    const int lane = static_cast<int>(threadIdx.x) % 32, across = lane / 4;
    output_ = lane % 4 * WORD;
    const TX* const first = memory.patch.elements + (Patch::LEFT + output_ * STRIDE_W) * PITCH + across * WORD;
#pragma unroll
    for (int i = 0; i < FRAGMENTS_N; ++i) {
      const int column = first_column + position.n + i * FRAGMENT;  // beyond the last, any will do
      const int run = column / RUN_COLUMNS % (T * R);
      columns_[i] = first + (run / R * DILATION_D * Patch::ROWS + run % R * DILATION_H) * Patch::COLUMNS * PITCH +
                    place_in_run(column % RUN_COLUMNS);
    }
  }

  // Finds out which outputs of the tile's rows exist: `outputs` of them.
  __device__ __forceinline__ void begin(Index outputs) {
#pragma unroll
    for (int i = 0; i < 4; ++i) exists_[i] = Q % TILE_Q == 0 || output_ + distance(i) < outputs;
  }

  __device__ __forceinline__ void read(Fragments& fragments, int row) const {
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) gradients_.read(fragments.a[i], tile_, i, row);
#pragma unroll
    for (int i = 0; i < FRAGMENTS_N; ++i) {
      unsigned words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int elements = (row * STRIDE_H * Patch::COLUMNS + distance(j) * STRIDE_W) * PITCH + columns_behind(j);
        words[j] = exists_[j] ? *reinterpret_cast<const unsigned*>(columns_[i] + elements) : 0;
      }
      if constexpr (WORD == 2) {
        fragments.b[i][0] = __byte_perm(words[0], words[1], 0x5410);
        fragments.b[i][1] = __byte_perm(words[2], words[3], 0x5410);
        fragments.b[i][2] = __byte_perm(words[0], words[1], 0x7632);
        fragments.b[i][3] = __byte_perm(words[2], words[3], 0x7632);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) fragments.b[i][j] = words[j];
      }
    }
  }

 private:
  // Word number i of a fragment: its output, counted from output_, and its column, from the lane's first.
  __device__ __forceinline__ static constexpr int distance(int i) {
    return WORD == 2 ? i / 2 * 8 + i % 2 : i % 2 * 4;
  }
  __device__ __forceinline__ static constexpr int columns_behind(int i) {
    return WORD == 2 ? 0 : i / 2 * 8;
  }

  PlacesOf<Gradients::Tile, true>::type gradients_;
  unsigned tile_;
  int output_;
  const TX* columns_[FRAGMENTS_N];
  bool exists_[4];
};

constexpr int SUMS_RUN = 2 * WORD;  // sums of a lane that stand side by side

// Calls visit(m, column, values) for these, counted from the block's first.
template <class Visit>
__device__ __forceinline__ void for_each_sum(const TensorSums& sums, const TensorPosition& position, Visit visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < 2 * FRAGMENTS_M; ++m) {
    const int row = position.m + m / 2 * FRAGMENT + lane / 4 + m % 2 * 8, first = m % 2 * 2;
#pragma unroll
    for (int n = 0; n < FRAGMENTS_N; ++n) {
      const auto& left = sums.values[m / 2][2 * n];
      const auto& right = sums.values[m / 2][2 * n + 1];
      const int column = position.n + n * FRAGMENT + lane % 4 * SUMS_RUN;
      if constexpr (WORD == 2) {  // even columns, odd columns
        visit(row, column, {left[first], right[first], left[first + 1], right[first + 1]});
      } else {
        visit(row, column, {left[first], left[first + 1]});
        visit(row, column + 8, {right[first], right[first + 1]});
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_filter_tensor_patch(const TX* __restrict__ x, const TDY* __restrict__ dy, float* __restrict__ parts,
                                      long long n) {
  static_assert(sizeof(GradientMemory) == SHARED_BYTES, "the launch asks for as much as patch and gradients take");
  GradientMemory& memory = block_memory<GradientMemory>();
  const int part = static_cast<int>(blockIdx.x);
  const int group = static_cast<int>(blockIdx.y) / FILTER_TILES;
  const int first_k = static_cast<int>(blockIdx.y) % FILTER_TILES * BLOCK_M;
  const int first_column = static_cast<int>(blockIdx.z) * BLOCK_N;

  memory.begin();
  const TensorPosition position;
  GradientReader reader(memory, position, first_column);
  TensorSums sums;
  const Index tiles = images_of(n) * TILES_PER_IMAGE;
#pragma unroll 1
  for (Index tile = part; tile < tiles; tile += SPLIT) {
    const PatchPlace place(tile);
    __syncthreads();  // all have read the tile before
    memory.patch.fill(x, group, place);
    memory.gradients.fill(dy, group, first_k, place);
    __syncthreads();
    reader.begin(Q - place.q);
#pragma unroll 4
    for (int row = 0; row < TILE_P; ++row) {
      if (P % TILE_P != 0 && place.p + row >= P) break;
      Fragments fragments;
      reader.read(fragments, row);
      sums.multiply(fragments);
    }
  }

  for_each_sum(sums, position, [&](int m, int column, const float(&values)[SUMS_RUN]) {
    if (first_k + m >= K_PER_GROUP || first_column + column >= COLUMNS) return;
    Vector<float, SUMS_RUN> run;
#pragma unroll
    for (int i = 0; i < SUMS_RUN; ++i) run[i] = values[i];
    const Index row = part * Index(K) + group * K_PER_GROUP + first_k + m;
    store<SUMS_RUN>(parts + (row * COLUMNS + first_column + column), run);
  });
}

// dw from the parts. A block adds 32 elements, each by REDUCE_THREADS / 32 threads.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_tensor_patch_reduce(const float* __restrict__ parts, TDW* dw, float alpha, float beta,
                                             UserArguments user) {
  constexpr int SHARES = REDUCE_THREADS / 32;
  __shared__ float sums[SHARES][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, share = static_cast<int>(threadIdx.x) / 32;
  Index k = static_cast<Index>(blockIdx.x) * 32 + lane;
  const int c = static_cast<int>(take_coordinate(k, C_PER_GROUP));
  const int tap = static_cast<int>(take_coordinate(k, TAPS));
  const bool exists = k < K;
  const float* const first = parts + (k * Index(COLUMNS) + tap / S * RUN_COLUMNS + tap % S * PIXEL + c);
  float sum = 0.0f;
#pragma unroll 8
  for (int part = share; part < SPLIT; part += SHARES) {
    if (exists) sum += load_readonly<1>(first + part * (Index(K) * COLUMNS))[0];
  }
  sums[share][lane] = sum;
  __syncthreads();
  if (share != 0 || !exists) return;
#pragma unroll
  for (int i = 1; i < SHARES; ++i) sum += sums[i][lane];
  const int stored = MIRRORED ? TAPS - 1 - tap : tap;
  const Index offset = k * Index(DW_STRIDE_K) + c * Index(DW_STRIDE_C) + stored / (R * S) * Index(DW_STRIDE_T) +
                       stored / S % R * Index(DW_STRIDE_R) + stored % S * Index(DW_STRIDE_S);
  store_result(dw, offset, sum, 0, {alpha, beta, user});
}
