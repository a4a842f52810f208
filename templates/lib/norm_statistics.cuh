// Parts of the statistics of rows by blocks (lib/row_blocks.cuh): taking elements of x and adding them, and the launch
// that leaves the parts in the workspace.
//
// From the prelude: what lib/row_moments.cuh, lib/row_blocks.cuh and lib/store.cuh have.
#include "lib/row_blocks.cuh"
#include "lib/row_moments.cuh"
#include "lib/store.cuh"

using Elements = Vector<UserKept<TX>::type, VECTOR>;

// The elements from number `i` on of a thread's rows, whose first is at x.
__device__ __forceinline__ Elements loaded(const TX* x, Index i, const UserArguments& user) {
  return user_kept<false>(load_neighbours<X_RUN, X_STEP>(x + element_offset<X_ROW_STRIDES>(i)), 0, user);
}

// Adds what a thread took of its rows.
__device__ __forceinline__ void add_taken(const Elements& elements, RowMoments (&sums)[SIDE]) {
  float values[VECTOR];
  as_floats(elements, values);
  if constexpr (ACROSS) {
#pragma unroll
    for (int j = 0; j < SIDE; ++j) {
      const float one[1] = {values[j]};
      sums[j].add(one);
    }
  } else {
    sums[0].add(values);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_statistics(const TX* __restrict__ x, float* __restrict__ workspace, UserArguments user, long long n) {
  const ThreadRows rows(n);
  x += rows.offset<X_OUTER_STRIDES, X_STEP>();
  RowMoments sums[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) sums[j] = RowMoments::of_nothing();
  if (rows.active) {
    for_each_taken(rows.lane, [&](Index i) { add_taken(loaded(x, i, user), sums); });
  }
  merge_lanes(rows, sums);
  if (rows.lane != 0 || !rows.active) return;
#pragma unroll
  for (int j = 0; j < SIDE; ++j) store_part(workspace, rows.first() + j, sums[j]);
}
