// The gradient of cross entropy of rows that stand side by side, NCHW for instance: a thread takes a row, neighbouring
// threads neighbouring rows, and reads it twice, the second time backwards. dx may be x itself.
// Parameters: cross_entropy_backward_strided.cpp.
#include "lib/cross_entropy_gradient.cuh"
#include "lib/rows.cuh"
#include "lib/softmax.cuh"
#include "lib/store_neighbours.cuh"

static_assert(VECTOR == 1, "a thread takes a row");

constexpr Index SLICES = ceil_div<Index>(INNER, THREADS);
constexpr int TOGETHER = 4;  // logits that travel together

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_backward_strided_count(const int* targets, int* counts, long long n) {
  count_rows(targets, counts, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_strided(const TX* x, const int* targets, const TDLOSS* dloss, TDX* dx, const int* counts,
                                   float alpha, float beta, long long) {
  const Index outer = static_cast<Index>(blockIdx.x) / SLICES;
  const Index column = static_cast<Index>(blockIdx.x) % SLICES * THREADS + static_cast<Index>(threadIdx.x);
  const float share = share_of_row(counts);
  if (column >= INNER) return;
  x += row_offset<X_OUTER_STRIDES>(outer) + column * Index(X_STEP);
  dx += row_offset<DX_OUTER_STRIDES>(outer) + column * Index(DX_STEP);

  RowStatistics row = RowStatistics::of_nothing();
  for (Index c = 0; c < ROW; c += TOGETHER) {
    float logits[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      logits[i] = c + i < ROW ? to_float(x[(c + i) * Index(X_AXIS_STRIDE)]) : -infinity();
    }
    row.add(logits);
  }
  const Index dloss_at = row_offset<DLOSS_OUTER_STRIDES>(outer) + column * Index(DLOSS_STEP);
  const RowGradient gradient(row.maximum, row.sum, factor_of(dloss, dloss_at, share),
                             targets[row_offset<TARGETS_OUTER_STRIDES>(outer) + column * Index(TARGETS_STEP)]);
#pragma unroll TOGETHER
  for (Index c = ROW - 1; c >= 0; --c) {
    const float gradients[1] = {gradient(to_float(x[c * Index(X_AXIS_STRIDE)]), static_cast<int>(c))};
    store_neighbours<1, DX_STEP>(dx + c * Index(DX_AXIS_STRIDE), gradients, alpha, beta);
  }
}
