// Softmax or log-softmax along an axis that is not the innermost dimension: NCHW over its channels, for instance.
//
// INNER is the extent of the innermost dimension of x or of y; the others beside the axis number groups of INNER rows.
// A thread takes VECTOR neighbouring rows, so that neighbouring threads read (or write) neighbouring addresses, and
// every AXIS_LANES-th element of them; the threads that share rows meet in shared memory. With KEEP a thread's elements
// stay in registers between the one read and the one write, KEPT at the most of each row; without, rows of any length
// are read twice. VECTOR divides INNER. Parameters: softmax_strided.cpp.
#include "lib/index.cuh"
#include "lib/softmax.cuh"
#include "lib/softmax_rows.cuh"

constexpr int COLUMNS = INNER_LANES * VECTOR;  // rows of a block
constexpr int GROUP = KEEP ? KEPT : 4;         // elements of a row that a thread has at a time

// Elements axis_lane + (step + k) * AXIS_LANES of the thread's rows, for k < GROUP.
__device__ __forceinline__ void load_group(const TX* x, const UserArguments& user, Index axis_lane, Index step,
                                           Elements (&group)[GROUP]) {
#pragma unroll
  for (int k = 0; k < GROUP; ++k) {
    const Index i = axis_lane + (step + k) * AXIS_LANES;
    if (i < ROW) group[k] = load_elements(x + i * Index(X_AXIS_STRIDE), user);
  }
}

__device__ __forceinline__ void add_group(Index axis_lane, Index step, const Elements (&group)[GROUP],
                                          RowStatistics (&rows)[VECTOR]) {
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    float elements[GROUP];
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
      elements[k] = axis_lane + (step + k) * AXIS_LANES < ROW ? to_float(group[k][j]) : -infinity();
    }
    rows[j].add(elements);
  }
}

// The statistics of whole rows from those of the threads that share them, in the same order for all of them.
__device__ __forceinline__ void merge_lanes(int inner_lane, int axis_lane, RowStatistics (&rows)[VECTOR]) {
  __shared__ RowStatistics parts[AXIS_LANES][COLUMNS];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) parts[axis_lane][j * INNER_LANES + inner_lane] = rows[j];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    rows[j] = parts[0][j * INNER_LANES + inner_lane];
#pragma unroll
    for (int lane = 1; lane < AXIS_LANES; ++lane) rows[j].merge(parts[lane][j * INNER_LANES + inner_lane]);
  }
}

extern "C" __global__ void __launch_bounds__(INNER_LANES* AXIS_LANES)
    softmax_strided(const TX* x, TY* y, float alpha, float beta, UserArguments user, long long) {
  const int inner_lane = static_cast<int>(threadIdx.x) % INNER_LANES;
  const int axis_lane = static_cast<int>(threadIdx.x) / INNER_LANES;
  const Index slices = ceil_div<Index>(INNER, COLUMNS);
  const Index steps = ceil_div<Index>(ROW, AXIS_LANES);  // elements that a thread takes of each of its rows
  const Index outer = static_cast<Index>(blockIdx.x) / slices;
  const Index column = static_cast<Index>(blockIdx.x) % slices * COLUMNS + inner_lane * VECTOR;
  const bool active = column < INNER;  // idle threads stay for the barrier
  x += x_row_offset(outer) + column * Index(X_STEP);
  const Index y_column = y_row_offset(outer) + column * Index(Y_STEP);

  Elements group[GROUP];
  RowStatistics rows[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) rows[j] = RowStatistics::of_nothing();
  if (active) {
    for (Index step = 0; step < steps; step += GROUP) {
      load_group(x, user, axis_lane, step, group);
      add_group(axis_lane, step, group, rows);
    }
  }
  if constexpr (AXIS_LANES > 1) merge_lanes(inner_lane, axis_lane, rows);
  if (!active) return;

  RowNormaliser<LOG> normalised[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) normalised[j] = RowNormaliser<LOG>(rows[j].maximum, rows[j].sum);
  for (Index step = 0; step < steps; step += GROUP) {
    if constexpr (!KEEP) load_group(x, user, axis_lane, step, group);
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
      const Index i = axis_lane + (step + k) * AXIS_LANES;
      if (i >= ROW) break;
      float values[VECTOR];
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) values[j] = normalised[j](to_float(group[k][j]));
      store_along<Y_RUN, Y_STEP>(y, y_column + i * Index(Y_AXIS_STRIDE), values, {alpha, beta, user});
    }
  }
}
