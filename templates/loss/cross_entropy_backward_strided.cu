// The gradient of cross entropy of rows that stand side by side, NCHW for instance: a thread takes a row, neighbouring
// threads neighbouring rows, and reads it twice, the second time backwards. dx may be x itself.
// Parameters: cross_entropy_backward_strided.cpp.
#include "lib/cross_entropy_gradient.cuh"
#include "lib/rows.cuh"
#include "lib/softmax.cuh"
#include "lib/store.cuh"

static_assert(VECTOR == 1, "a thread takes a row");

// Blocks that rows side by side take.
__device__ __forceinline__ Index slices() {
  return ceil_div<Index>(INNER, THREADS);
}

constexpr int TOGETHER = 4;  // logits that travel together

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_backward_strided_count(const int* targets, const float* weights, Share* counts, long long n) {
  count_rows(targets, weights, counts, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_strided(const TX* x, const int* targets, const float* weights, const TDLOSS* dloss, TDX* dx,
                                   const Share* counts, float alpha, float beta, UserArguments user, float smoothing,
                                   long long) {
  const Index outer = static_cast<Index>(blockIdx.x) / slices();
  const Index column = static_cast<Index>(blockIdx.x) % slices() * THREADS + static_cast<Index>(threadIdx.x);
  const float part = part_of_all(counts);
  if (column >= INNER) return;
  x += row_offset<X_OUTER_STRIDES>(outer) + column * Index(X_STEP);
  const Index dx_column = row_offset<DX_OUTER_STRIDES>(outer) + column * Index(DX_STEP);

  RowStatistics row = RowStatistics::of_nothing();
  for (Index c = 0; c < ROW; c += TOGETHER) {
    float logits[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      logits[i] = c + i < ROW ? user_entered(x[(c + i) * Index(X_AXIS_STRIDE)], 0, user) : -infinity();
    }
    row.add(logits);
  }
  const Index dloss_at = row_offset<DLOSS_OUTER_STRIDES>(outer) + column * Index(DLOSS_STEP);
  float total = 0.0f;  // of all weights
  if constexpr (SMOOTHS) {
    for (Index c = 0; c < ROW; ++c) total += weight_of(weights, c);
  }
  const int target = targets[row_offset<TARGETS_OUTER_STRIDES>(outer) + column * Index(TARGETS_STEP)];
  const RowGradient gradient(row.maximum, row.sum, factor_of(dloss, dloss_at, part), target,
                             RowWeights(weights, target, total, smoothing));
#pragma unroll TOGETHER
  for (Index c = ROW - 1; c >= 0; --c) {
    const float logit = user_entered(x[c * Index(X_AXIS_STRIDE)], 0, user);
    const float value = gradient(logit, static_cast<int>(c), weight_of(weights, c));
    store_result(dx, dx_column + c * Index(DX_AXIS_STRIDE), value, 0, {alpha, beta, user});
  }
}
