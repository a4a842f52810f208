// The gradient of cross entropy of rows whose logits stand near each other: LANES threads share a row, lanes of a warp
// or a block.
//
// With KEEP, what a thread read stays in registers between the sum and the result, KEPT vectors at the most; without,
// rows of any length are read twice, the second time backwards: what was read last is still in the cache. dx may be x
// itself: a thread writes the elements that it alone has read. VECTOR divides ROW. Parameters:
// cross_entropy_backward_rows.cpp.
#include "lib/cross_entropy_gradient.cuh"
#include "lib/cross_entropy_weights.cuh"
#include "lib/row_elements.cuh"
#include "lib/shared_statistics.cuh"
#include "lib/store.cuh"

constexpr int UNROLL = KEEP ? KEPT : 4;

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_backward_rows_count(const int* targets, const float* weights, Share* counts, long long n) {
  count_rows(targets, weights, counts, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_rows(const TX* x, const int* targets, const float* weights, const TDLOSS* dloss, TDX* dx,
                                const Share* counts, float alpha, float beta, UserArguments user, float smoothing,
                                long long n) {
  const Index row = LANES <= 32 ? global_thread<THREADS, Index>() / LANES : static_cast<Index>(blockIdx.x);
  const int first = static_cast<int>(threadIdx.x) % LANES * VECTOR;
  const bool active = row < rows_of(n);  // idle threads stay for the reductions
  const float part = part_of_all(counts);
  x += row_offset<X_OUTER_STRIDES>(row);
  const Index dx_row = row_offset<DX_OUTER_STRIDES>(row);

  const int steps = KEEP ? KEPT : ceil_div<int>(ROW, LANES * VECTOR);  // vectors of a thread, at the most
  Elements kept[KEPT];
  RowStatistics mine = RowStatistics::of_nothing();
  float total = 0.0f;  // of all weights
#pragma unroll UNROLL
  for (int step = 0; step < steps; ++step) {
    const int i = step * LANES * VECTOR + first;
    if (!active || i >= ROW) break;
    Elements& elements = kept[KEEP ? step : 0];
    elements = load_elements(x + i * Index(X_STEP), user);
    float logits[VECTOR];
    as_floats(elements, logits);
    mine.add(logits);
    if constexpr (SMOOTHS) {
      const Vector<float, VECTOR> own = weights_of(weights, i);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) total += own[j];
    }
  }
  const RowStatistics all = of_whole_row(mine);
  if constexpr (SMOOTHS) total = row_reduce(total, Sum());
  if (!active) return;
  const int target = targets[row_offset<TARGETS_OUTER_STRIDES>(row)];
  const RowGradient gradient(all.maximum, all.sum, factor_of(dloss, row_offset<DLOSS_OUTER_STRIDES>(row), part), target,
                             RowWeights(weights, target, total, smoothing));

#pragma unroll UNROLL
  for (int step = steps - 1; step >= 0; --step) {
    const int i = step * LANES * VECTOR + first;
    if (i >= ROW) continue;
    Elements& elements = kept[KEEP ? step : 0];
    if constexpr (!KEEP) elements = load_elements(x + i * Index(X_STEP), user);
    const Vector<float, VECTOR> own = weights_of(weights, i);  // unused unless SMOOTHS
    float gradients[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) gradients[j] = gradient(to_float(elements[j]), i + j, own[j]);
    store_along<DX_RUN, DX_STEP>(dx, dx_row + i * Index(DX_STEP), gradients, {alpha, beta, user});
  }
}
