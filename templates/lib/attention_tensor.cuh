// Products of attention on tensor cores: fragments of lib/tensor_cores.cuh, of tiles in shared memory.
//
// From the prelude: WARPS, of WARP_ROWS rows of scores each; BLOCK_N columns.
//
// In the fragments of lane l, g = l / 4 and t = l % 4: scores[m][n][0], scores[m][n][1] belong to row 16m + g and the
// columns 8n + 2t and 8n + 2t + 1, scores[m][n][2], scores[m][n][3] to row 16m + g + 8. As a factor, two such columns
// of 8 are a fragment of 16 keys.
#include "lib/attention_rows.cuh"
#include "lib/copies.cuh"
#include "lib/tensor_cores.cuh"
#include "lib/vector.cuh"

constexpr int BLOCK_M = WARPS * WARP_ROWS, THREADS = WARPS * 32;
constexpr int FRAGMENTS = WARP_ROWS / 16;
constexpr int COLUMNS = BLOCK_N / 8;                                      // of 8 keys
constexpr int THREAD_ROWS = 2 * FRAGMENTS, THREAD_COLUMNS = 2 * COLUMNS;  // of a lane
constexpr int DEPTH_STEPS = (DEPTH + 15) / 16;                            // fragments along a query or key
constexpr int WIDTH_STEPS = (WIDTH + 15) / 16;                            // along a value

// Rows of 16-bit elements, padded with zeros to whole fragments. The pieces of 16 bytes that eight neighbouring rows
// have at one place lie in different banks.
template <int ROWS, int STEPS>
struct HalfTile {
  static constexpr int PITCH_BYTES = STEPS * 32 + 16;

  alignas(16) char bytes[ROWS * PITCH_BYTES];

  __device__ __forceinline__ static unsigned byte_of(int row, int element) { return row * PITCH_BYTES + element * 2; }

  // Starts the copies of the first `count` rows of a tensor, of so many `elements` side by side each, and of zeros for
  // the others.
  template <int RUN, class T, class OffsetOf>
  __device__ __forceinline__ void start_copies(const T* tensor, int elements, int count, const OffsetOf& offset_of) {
    constexpr int RUNS = STEPS * 16 / RUN;
    const unsigned first = shared_address(bytes);
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * RUNS; i += THREADS) {
      const int row = i / RUNS, element = i % RUNS * RUN;
      const bool is_there = row < count && element < elements;
      const T* const from = is_there ? tensor + offset_of(row) + element : tensor;
      start_copy<RUN * 2, false>(first + byte_of(row, element), from, is_there);
    }
  }
};

// Two elements of 16 bits.
template <class T>
__device__ __forceinline__ unsigned packed(float low, float high);
template <>
__device__ __forceinline__ unsigned packed<f16>(float low, float high) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
template <>
__device__ __forceinline__ unsigned packed<bf16>(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

struct WarpPosition {
  int lane, first;  // of the block's rows, the first one of the warp

  __device__ __forceinline__ WarpPosition()
      : lane(static_cast<int>(threadIdx.x) % 32), first(static_cast<int>(threadIdx.x) / 32 * WARP_ROWS) {}
  // Rows of this lane by their number, and columns.
  __device__ __forceinline__ int row(int i) const { return first + 8 * i + lane / 4; }
  __device__ __forceinline__ int column(int n) const { return 8 * n + lane % 4 * 2; }
};

// Fragments of a warp's rows as the left factor.
using LeftFragments = unsigned[FRAGMENTS][4];

// Rows that stay in registers, straight from memory: they are read once.
template <class T, int STEPS, int ELEMENTS>
struct KeptRows {
  LeftFragments words[STEPS];

  // `row_at(row)`: the first element of a row of the block, null where there is none. Neighbours are `step` apart; RUN
  // of them, 1 or 2, are one access.
  template <int RUN, class Step, class RowAt>
  __device__ __forceinline__ void load(const WarpPosition& at, Step step, const RowAt& row_at) {
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) {
      const T* const row = row_at(at.row(i));
#pragma unroll
      for (int s = 0; s < 2 * STEPS; ++s) {
        const int element = at.column(s);
        unsigned low = 0, high = 0;
        if constexpr (RUN == 2) {
          if (row != nullptr && element < ELEMENTS) low = load_readonly<2>(row + element).words[0];
        } else {
          if (row != nullptr && element < ELEMENTS) low = load_readonly<1>(row + element * Index(step))[0].bits;
          if (row != nullptr && element + 1 < ELEMENTS) {
            high = load_readonly<1>(row + (element + 1) * Index(step))[0].bits;
          }
        }
        words[s / 2][i / 2][i % 2 + s % 2 * 2] = low | high << 16;
      }
    }
  }
  __device__ __forceinline__ void take(int step, LeftFragments& fragments) const {
#pragma unroll
    for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) fragments[m][i] = words[step][m][i];
    }
  }
};

// Rows of a tile in shared memory.
template <class Tile>
struct SharedRows {
  unsigned first;

  __device__ __forceinline__ SharedRows(const Tile& tile, const WarpPosition& at)
      : first(shared_address(tile.bytes) + Tile::byte_of(at.first + at.lane % 16, at.lane / 16 * 8)) {}
  __device__ __forceinline__ void take(int step, LeftFragments& fragments) const {
#pragma unroll
    for (int m = 0; m < FRAGMENTS; ++m) load_matrices<false>(fragments[m], first + Tile::byte_of(16 * m, 16 * step));
  }
};

using Scores = float[FRAGMENTS][COLUMNS][4];

// A lane's part of the scores, as lib/attention_weights.cuh asks for it.
using Position = WarpPosition;

__device__ __forceinline__ int row_of(const WarpPosition& at, int i) {
  return at.row(i);
}
__device__ __forceinline__ int column_of(const WarpPosition& at, int j) {
  return at.column(j / 2) + j % 2;
}
__device__ __forceinline__ float& score_at(Scores& scores, int i, int j) {
  return scores[i / 2][j / 2][i % 2 * 2 + j % 2];
}
// Number of this lane among those that share its rows, and how many they are.
__device__ __forceinline__ int number_in_row(const WarpPosition& at) {
  return at.lane % 4;
}
constexpr int ROW_THREADS = 4;

// Combines a value of each of the four lanes that share rows.
template <class Combine>
__device__ __forceinline__ float over_row(float value, const Combine& combine) {
  value = combine(value, __shfl_xor_sync(0xffffffff, value, 1));
  return combine(value, __shfl_xor_sync(0xffffffff, value, 2));
}

__device__ __forceinline__ void clear(Scores& scores) {
#pragma unroll
  for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
    for (int n = 0; n < COLUMNS; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[m][n][i] = 0.0f;
    }
  }
}

// Adds to scores rows times the rows of `tile`, which are the columns of the scores.
template <class T, int STEPS, class Rows, class Tile>
__device__ __forceinline__ void add_products(const Rows& rows, const Tile& tile, const WarpPosition& at,
                                             Scores& scores) {
  // Matrices of 8 x 8: rows 0 to 7 at elements 0 and 8, rows 8 to 15 at the same.
  const unsigned first =
      shared_address(tile.bytes) + Tile::byte_of(at.lane % 8 + at.lane / 16 * 8, at.lane / 8 % 2 * 8);
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    LeftFragments left;
    rows.take(s, left);
#pragma unroll
    for (int n = 0; n < COLUMNS; n += 2) {
      unsigned matrices[4];
      load_matrices<false>(matrices, first + Tile::byte_of(8 * n, 16 * s));
#pragma unroll
      for (int m = 0; m < FRAGMENTS; ++m) {
        multiply_fragments<T>(scores[m][n], left[m], {matrices[0], matrices[1]});
        multiply_fragments<T>(scores[m][n + 1], left[m], {matrices[2], matrices[3]});
      }
    }
  }
}

// scores = the same.
template <class T, int STEPS, class Rows, class Tile>
__device__ __forceinline__ void multiply_rows(const Rows& rows, const Tile& tile, const WarpPosition& at,
                                              Scores& scores) {
  clear(scores);
  add_products<T, STEPS>(rows, tile, at, scores);
}

// Sums of a warp's rows, STEPS fragments of 16 elements each.
template <int STEPS>
struct FragmentSums {
  float sums[FRAGMENTS][2 * STEPS][4];

  __device__ __forceinline__ FragmentSums() {
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) clear(i);
  }
  __device__ __forceinline__ void clear(int i) {
#pragma unroll
    for (int n = 0; n < 2 * STEPS; ++n) at(i, n, 0) = at(i, n, 1) = 0.0f;
  }
  // Element 8n + 2t + j of row number `i` of this lane.
  __device__ __forceinline__ float& at(int i, int n, int j) {
    return sums[i / 2][n][i % 2 * 2 + j];
  }
  __device__ __forceinline__ void scale(int i, float factor) {
#pragma unroll
    for (int n = 0; n < 2 * STEPS; ++n) {
      at(i, n, 0) *= factor;
      at(i, n, 1) *= factor;
    }
  }

  // Calls use(i, column, pair) for each pair of neighbours.
  template <class Use>
  __device__ __forceinline__ void for_each(const WarpPosition& at, const Use& use) {
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) {
#pragma unroll
      for (int n = 0; n < 2 * STEPS; ++n) {
        float pair[2] = {this->at(i, n, 0), this->at(i, n, 1)};
        use(i, at.column(n), pair);
      }
    }
  }

  // Adds the rows of `tile`, weighted by scores that are rounded to T.
  template <class T, class Tile>
  __device__ __forceinline__ void add(const Scores& weights, const Tile& tile, const WarpPosition& at) {
    // Matrices of 8 x 8, turned: elements 0 to 7 of rows 0 and 8, elements 8 to 15 of the same.
    const unsigned first = shared_address(tile.bytes) + Tile::byte_of(at.lane % 16, at.lane / 16 * 8);
#pragma unroll
    for (int n = 0; n < COLUMNS; n += 2) {
      LeftFragments left;
#pragma unroll
      for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&pairs)[4] = weights[m][n + i / 2];
          left[m][i] = packed<T>(pairs[i % 2 * 2], pairs[i % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int s = 0; s < STEPS; ++s) {
        unsigned matrices[4];
        load_matrices<true>(matrices, first + Tile::byte_of(8 * n, 16 * s));
#pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m) {
          multiply_fragments<T>(sums[m][2 * s], left[m], {matrices[0], matrices[1]});
          multiply_fragments<T>(sums[m][2 * s + 1], left[m], {matrices[2], matrices[3]});
        }
      }
    }
  }
};
