// Rows along one or several axes, by blocks: which threads take which elements, and how what they made of them meets.
//
// LANES threads share a row. Rows that lie ACROSS memory stand side by side: a thread takes VECTOR of them, one element
// of each at a time; others are read along: a thread takes VECTOR neighbours of one row at a time. SPLITS blocks (along
// blockIdx.y) share the elements of a row; what they make of them are parts that another kernel merges in order.
//
// From the prelude, besides what lib/rows.cuh has: ROWS, ROWS_PER_IMAGE, DYNAMIC_N, ROW (elements of a row),
// ROW_EXTENTS and, for each operand, X_ROW_STRIDES (the dimensions that number the elements of a row, innermost first,
// ROW_DIMENSIONS of them: 1, 2 or 6, of which some may have the extent 1); ACROSS, INNER (rows side by side, 1 if not
// ACROSS), LANES, THREADS, SPLITS, MERGE_LANES. VECTOR divides INNER if ACROSS, else ROW_EXTENTS[0].
#include "lib/index.cuh"
#include "lib/rows.cuh"

constexpr int GROUPS = THREADS / LANES;     // rows of a block, or groups of VECTOR rows
constexpr int SIDE = ACROSS ? VECTOR : 1;   // rows of a thread
constexpr int TAKEN = ACROSS ? 1 : VECTOR;  // elements that a thread takes together of a row
constexpr int COLUMNS = GROUPS * SIDE;      // rows of a block

static_assert((LANES & (LANES - 1)) == 0 && THREADS % LANES == 0, "lanes are halved");
static_assert(ACROSS || LANES <= 32 || LANES == THREADS, "a row's threads are of one warp, or all of a block");

__device__ __forceinline__ Index rows_of_call(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
}

// Offset of element number `element` of a row from its first, in the operand of these X_ROW_STRIDES.
template <const long long (&STRIDES)[6]>
__device__ __forceinline__ Index element_offset(Index element) {
  if constexpr (ROW_DIMENSIONS == 1) {
    return element * Index(STRIDES[0]);
  } else if constexpr (ROW_DIMENSIONS == 2) {
    const Index inner = take_coordinate(element, ROW_EXTENTS[0]);
    return inner * Index(STRIDES[0]) + element * Index(STRIDES[1]);
  } else {
    return strided_offset(element, STRIDES[0], ROW_EXTENTS[0], STRIDES[1], ROW_EXTENTS[1], STRIDES[2], ROW_EXTENTS[2],
                          STRIDES[3], ROW_EXTENTS[3], STRIDES[4], ROW_EXTENTS[4], STRIDES[5], ROW_EXTENTS[5]);
  }
}

// The rows of a thread.
struct ThreadRows {
  Index outer;   // their number among the groups of INNER rows
  Index column;  // of the first, in its group
  int group, lane;
  bool active;  // idle threads stay for the barriers

  __device__ __forceinline__ explicit ThreadRows(long long n) {
    const int thread = static_cast<int>(threadIdx.x);
    const Index block = static_cast<Index>(blockIdx.x);
    if constexpr (ACROSS) {
      group = thread % GROUPS;
      lane = thread / GROUPS;
      const Index slices = ceil_div<Index>(INNER, COLUMNS);
      outer = block / slices;
      column = block % slices * COLUMNS + group * VECTOR;
      active = column < INNER;
    } else {
      group = thread / LANES;
      lane = thread % LANES;
      outer = block * GROUPS + group;
      column = 0;
      active = outer < rows_of_call(n);
    }
  }

  // Number of the first among all rows.
  __device__ __forceinline__ Index first() const { return outer * INNER + column; }
  // Offset of the first element of the first row, in the operand of these X_OUTER_STRIDES and X_STEP.
  template <const long long (&STRIDES)[5], const auto& STEP>
  __device__ __forceinline__ Index offset() const {
    return row_offset<STRIDES>(outer) + (ACROSS ? column * Index(STEP) : 0);
  }
};

// Calls visit(element) for the first of every TAKEN elements that thread `lane` takes of its block's part of a row.
template <class Visit>
__device__ __forceinline__ void for_each_taken(int lane, const Visit& visit) {
  const Index part = ceil_div<Index>(ROW / TAKEN, SPLITS) * TAKEN;  // elements of a block, but for a row's last
  const Index begin = SPLITS == 1 ? 0 : static_cast<Index>(blockIdx.y) * part;
  const Index end = SPLITS == 1 ? ROW : smaller<Index>(begin + part, ROW);
#pragma unroll 4
  for (Index i = begin + lane * TAKEN; i < end; i += LANES * TAKEN) visit(i);
}

// A `Sum` is what threads make of elements: a number of WORDS floats, `words`, and Sum::merged(earlier, later).

// Merges over groups of COUNT neighbouring lanes of a warp; all of them get the result. All 32 lanes must take part.
template <int COUNT, class Sum>
__device__ __forceinline__ Sum merged_lanes(Sum sum) {
  static_assert(COUNT <= 32 && (COUNT & (COUNT - 1)) == 0, "lanes of a warp");
#pragma unroll
  for (int distance = COUNT / 2; distance > 0; distance /= 2) {
    Sum other;
#pragma unroll
    for (int w = 0; w < Sum::WORDS; ++w) other.words[w] = __shfl_xor_sync(0xffffffffu, sum.words[w], distance);
    sum = (threadIdx.x & distance) == 0 ? Sum::merged(sum, other) : Sum::merged(other, sum);
  }
  return sum;
}

// Merges the sums of the warps of a block; all threads get the result. Once in a kernel.
template <class Sum>
__device__ __forceinline__ Sum merged_warps(const Sum& sum) {
  constexpr int WARPS = THREADS / 32;
  __shared__ float warps[WARPS][Sum::WORDS];
#pragma unroll
  for (int w = 0; w < Sum::WORDS; ++w) {
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32][w] = sum.words[w];
  }
  __syncthreads();
  Sum all;
#pragma unroll
  for (int i = 0; i < WARPS; ++i) {
    Sum warp;
#pragma unroll
    for (int w = 0; w < Sum::WORDS; ++w) warp.words[w] = warps[i][w];
    all = i == 0 ? warp : Sum::merged(all, warp);
  }
  return all;
}

// Sums of a block's rows, which lie ACROSS, in shared memory.
template <class Sum>
struct SharedSums {
  float words[Sum::WORDS][LANES][COLUMNS];

  __device__ __forceinline__ void store(const ThreadRows& rows, const Sum (&sums)[SIDE]) {
#pragma unroll
    for (int j = 0; j < SIDE; ++j) {
#pragma unroll
      for (int w = 0; w < Sum::WORDS; ++w) words[w][rows.lane][j * GROUPS + rows.group] = sums[j].words[w];
    }
  }
  // Sums of row `j` of the thread that lane `lane` stored.
  __device__ __forceinline__ Sum load(const ThreadRows& rows, int lane, int j) const {
    Sum sum;
#pragma unroll
    for (int w = 0; w < Sum::WORDS; ++w) sum.words[w] = words[w][lane][j * GROUPS + rows.group];
    return sum;
  }
};

// Merges the sums of the threads that share rows; all of them get the result. Once in a kernel.
template <class Sum>
__device__ __forceinline__ void merge_lanes(const ThreadRows& rows, Sum (&sums)[SIDE]) {
  if constexpr (!ACROSS) {
    sums[0] = merged_lanes<smaller(LANES, 32)>(sums[0]);
    if constexpr (LANES > 32) sums[0] = merged_warps(sums[0]);
  } else if constexpr (LANES > 1) {
    __shared__ SharedSums<Sum> shared;
    shared.store(rows, sums);
#pragma unroll 1
    for (int half = LANES / 2; half > 0; half /= 2) {
      __syncthreads();
      if (rows.lane >= half) continue;
#pragma unroll
      for (int j = 0; j < SIDE; ++j) sums[j] = Sum::merged(sums[j], shared.load(rows, rows.lane + half, j));
      shared.store(rows, sums);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < SIDE; ++j) sums[j] = shared.load(rows, 0, j);
  }
}

// parts: [Sum::WORDS][SPLITS][ROWS] f32.
template <class Sum>
__device__ __forceinline__ void store_part(float* parts, Index row, const Sum& sum) {
#pragma unroll
  for (int w = 0; w < Sum::WORDS; ++w) {
    parts[(w * SPLITS + static_cast<Index>(blockIdx.y)) * Index(ROWS) + row] = sum.words[w];
  }
}

// The place in the workspace behind the parts.
template <class Sum, class T>
__device__ __forceinline__ T* behind_parts(T* workspace) {
  return SPLITS == 1 ? workspace : workspace + Index(Sum::WORDS) * SPLITS * ROWS;
}

// All parts of a row in order, by MERGE_LANES neighbouring threads; each of them gets the result. All threads of a warp
// must take part, with rows that there are.
template <class Sum>
__device__ __forceinline__ Sum merged_parts(const float* parts, Index row) {
  const int of_lane = SPLITS / MERGE_LANES;
  const int first = MERGE_LANES == 1 ? 0 : static_cast<int>(threadIdx.x) % MERGE_LANES * of_lane;
  Sum sum;
#pragma unroll 8
  for (int i = 0; i < of_lane; ++i) {
    Sum part;
#pragma unroll
    for (int w = 0; w < Sum::WORDS; ++w) part.words[w] = parts[(w * SPLITS + first + i) * Index(ROWS) + row];
    sum = i == 0 ? part : Sum::merged(sum, part);
  }
  return merged_lanes<MERGE_LANES>(sum);
}
