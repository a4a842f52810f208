// Products of attention on the lanes of a block, in f32: tiles in shared memory, sums in registers.
//
// From the prelude: BLOCK_M rows by BLOCK_N columns of scores; THREADS. A thread has four rows beside each other, and
// of the columns every LANES-th.
#include "lib/attention_rows.cuh"
#include "lib/block_memory.cuh"
#include "lib/vector.cuh"

constexpr int LANES = BLOCK_N / 4;  // threads that share four rows
static_assert(THREADS == BLOCK_M / 4 * LANES, "a thread has four rows and four columns");

// Rows of so many elements, padded with zeros to whole vectors; vectors of neighbouring rows lie in different banks.
template <int ROWS, int COLUMNS>
struct FloatTile {
  static constexpr int VECTORS = (COLUMNS + 3) / 4, PITCH = VECTORS * 4 + 4;

  alignas(16) float elements[ROWS * PITCH];

  __device__ __forceinline__ float4& vector(int row, int column) {
    return *reinterpret_cast<float4*>(elements + row * PITCH + column);
  }
  __device__ __forceinline__ const float4& vector(int row, int column) const {
    return *reinterpret_cast<const float4*>(elements + row * PITCH + column);
  }

  // Takes the first `count` rows of a tensor, each from the offset that `offset_of(row)` gives, and zeros for the
  // others and behind so many `elements`. Accesses have RUN elements.
  template <int RUN, class T, class Step, class OffsetOf>
  __device__ __forceinline__ void load(const T* tensor, Step step, int count, const OffsetOf& offset_of,
                                       int elements = COLUMNS) {
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * VECTORS; i += THREADS) {
      const int row = i / VECTORS, column = i % VECTORS * 4;
      float values[4] = {};
#pragma unroll
      for (int j = 0; j < 4; j += RUN) {
        if (row < count && column + j < elements) {
          const Vector<T, RUN> run = load_readonly<RUN>(tensor + offset_of(row) + (column + j) * Index(step));
#pragma unroll
          for (int k = 0; k < RUN; ++k) values[j + k] = to_float(run[k]);
        }
      }
      vector(row, column) = make_float4(values[0], values[1], values[2], values[3]);
    }
  }
};

// This thread's rows and columns.
struct BlockPosition {
  int row, lane;

  __device__ __forceinline__ BlockPosition()
      : row(static_cast<int>(threadIdx.x) / LANES * 4), lane(static_cast<int>(threadIdx.x) % LANES) {}
  __device__ __forceinline__ int column(int i) const { return lane + LANES * i; }
};

using Scores = float[4][4];

// A thread's part of the scores, as lib/attention_weights.cuh asks for it.
using Position = BlockPosition;
constexpr int THREAD_ROWS = 4, THREAD_COLUMNS = 4;

__device__ __forceinline__ int row_of(const BlockPosition& at, int i) {
  return at.row + i;
}
__device__ __forceinline__ int column_of(const BlockPosition& at, int j) {
  return at.column(j);
}
__device__ __forceinline__ float& score_at(Scores& scores, int i, int j) {
  return scores[i][j];
}
// Number of this thread among those that share its rows, and how many they are.
__device__ __forceinline__ int number_in_row(const BlockPosition& at) {
  return at.lane;
}
constexpr int ROW_THREADS = LANES;

// Combines a value of each of the threads that share rows.
template <class Combine>
__device__ __forceinline__ float over_row(float value, const Combine& combine) {
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffff, value, distance));
  }
  return value;
}

__device__ __forceinline__ void clear(Scores& scores) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) scores[i][j] = 0.0f;
  }
}

// Adds the products of a thread's rows of `a` with its columns, rows of `b`.
template <class TileA, class TileB>
__device__ __forceinline__ void add_products(const TileA& a, const TileB& b, const BlockPosition& at,
                                             Scores& products) {
#pragma unroll 2
  for (int d = 0; d < TileA::VECTORS * 4; d += 4) {
    float4 left[4], right[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) left[i] = a.vector(at.row + i, d);
#pragma unroll
    for (int j = 0; j < 4; ++j) right[j] = b.vector(at.column(j), d);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        products[i][j] += left[i].x * right[j].x;
        products[i][j] += left[i].y * right[j].y;
        products[i][j] += left[i].z * right[j].z;
        products[i][j] += left[i].w * right[j].w;
      }
    }
  }
}

// The products of them.
template <class TileA, class TileB>
__device__ __forceinline__ void multiply_rows(const TileA& a, const TileB& b, const BlockPosition& at,
                                              Scores& products) {
  clear(products);
  add_products(a, b, at, products);
}

using WeightTile = FloatTile<BLOCK_M, BLOCK_N>;

__device__ __forceinline__ void keep_weights(WeightTile& tile, const BlockPosition& at, const float (&weights)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) tile.elements[(at.row + i) * WeightTile::PITCH + at.column(j)] = weights[i][j];
  }
}

// Sums of a thread's rows: of COLUMNS elements every LANES-th vector.
template <int COLUMNS>
struct RowSums {
  static constexpr int VECTORS = (COLUMNS + 3) / 4, GROUPS = (VECTORS + LANES - 1) / LANES;

  float sums[4][GROUPS][4];

  __device__ __forceinline__ RowSums() {
#pragma unroll
    for (int i = 0; i < 4; ++i) scale(i, 0.0f, true);
  }
  __device__ __forceinline__ void scale(int i, float factor, bool clears = false) {
#pragma unroll
    for (int group = 0; group < GROUPS; ++group) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][group][j] = clears ? 0.0f : sums[i][group][j] * factor;
    }
  }

  // Adds rows of `values`, weighted.
  template <class Tile>
  __device__ __forceinline__ void add(const WeightTile& weights, const Tile& values, const BlockPosition& at) {
#pragma unroll 2
    for (int line = 0; line < BLOCK_N; line += 4) {
      float4 factors[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) factors[i] = weights.vector(at.row + i, line);
#pragma unroll
      for (int group = 0; group < GROUPS; ++group) {
        const int vector = at.lane + LANES * group;
        if (VECTORS % LANES != 0 && vector >= VECTORS) continue;
        add_vector(factors, values.vector(line, vector * 4), values.vector(line + 1, vector * 4),
                   values.vector(line + 2, vector * 4), values.vector(line + 3, vector * 4), group);
      }
    }
  }

  // Calls use(i, column, vector) for each of the vectors.
  template <class Use>
  __device__ __forceinline__ void for_each(const BlockPosition& at, const Use& use) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int group = 0; group < GROUPS; ++group) {
        const int vector = at.lane + LANES * group;
        if (VECTORS % LANES == 0 || vector < VECTORS) use(i, vector * 4, sums[i][group]);
      }
    }
  }

 private:
  __device__ __forceinline__ void add_vector(const float4 (&factors)[4], float4 a, float4 b, float4 c, float4 d,
                                             int group) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float(&sum)[4] = sums[i][group];
      const auto add = [&](float factor, float4 value) {
        sum[0] += factor * value.x;
        sum[1] += factor * value.y;
        sum[2] += factor * value.z;
        sum[3] += factor * value.w;
      };
      add(factors[i].x, a);
      add(factors[i].y, b);
      add(factors[i].z, c);
      add(factors[i].w, d);
    }
  }
};
