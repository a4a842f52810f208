// One value of all elements of a row, rows along any axes and in any layout (lib/row_blocks.cuh).
//
// Few long rows are split: the first kernel leaves the parts of each row in the workspace, the second merges them,
// always in the same order. Parameters: reduce_blocks.cpp.
#include "lib/reduction.cuh"
#include "lib/row_blocks.cuh"
#include "lib/store.cuh"

struct Results {
  TY* y;
  int* indices;
  OutputArguments output;
};

// Stores what became of row `column` of group `outer`.
__device__ __forceinline__ void store_row(const Results& results, Index outer, Index column, const Reduction& sum) {
  const Index y_row = row_offset<Y_OUTER_STRIDES>(outer) + column * Index(Y_STEP);
  store_result(results.y, y_row, sum.value(float(ROW)), 0, results.output);
  if constexpr (WITH_INDICES) {
    results.indices[row_offset<INDICES_OUTER_STRIDES>(outer) + column * Index(INDICES_STEP)] = sum.position();
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    reduce_blocks(const TX* __restrict__ x, TY* y, int* indices, float* __restrict__ parts, float alpha, float beta,
                  UserArguments user, long long n) {
  const ThreadRows rows(n);
  x += rows.offset<X_OUTER_STRIDES, X_STEP>();
  Reduction sums[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) sums[j] = Reduction::of_nothing();
  if (rows.active) {
    for_each_taken(rows.lane, [&](Index i) {
      const Vector<TX, VECTOR> elements = load_neighbours<X_RUN, X_STEP>(x + element_offset<X_ROW_STRIDES>(i));
      const int position = static_cast<int>(element_offset<POSITION_ROW_STRIDES>(i));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        const int at = ACROSS ? position : position + j * static_cast<int>(POSITION_STEP);
        Reduction& sum = sums[ACROSS ? j : 0];
        sum = Reduction::merged(sum, Reduction::of_element(user_entered(elements[j], 0, user), at));
      }
    });
  }
  merge_lanes(rows, sums);
  if (rows.lane != 0 || !rows.active) return;
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    if (SPLITS > 1) {
      store_part(parts, rows.first() + j, sums[j]);
    } else {
      store_row({y, indices, {alpha, beta, user}}, rows.outer, rows.column + j, sums[j]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    reduce_blocks_merge(const float* __restrict__ parts, TY* y, int* indices, float alpha, float beta,
                        UserArguments user, long long n) {
  const Index row = global_thread<THREADS, Index>() / MERGE_LANES;
  const bool active = row < rows_of_call(n);
  const Reduction sum = merged_parts<Reduction>(parts, active ? row : 0);
  if (!active || threadIdx.x % MERGE_LANES != 0) return;
  store_row({y, indices, {alpha, beta, user}}, row / INNER, row % INNER, sum);
}
