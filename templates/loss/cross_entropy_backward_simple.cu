// The gradient of cross entropy, the plain way: one thread a row, three passes, any strides. The trusted kernel of
// cross_entropy_backward. Parameters: cross_entropy_backward_simple.cpp.
#include "lib/blend.cuh"
#include "lib/cross_entropy_gradient.cuh"

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_backward_simple_count(const int* targets, int* counts, long long n) {
  count_rows(targets, counts, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_simple(const TX* x, const int* targets, const TDLOSS* dloss, TDX* dx, const int* counts,
                                  float alpha, float beta, long long n) {
  constexpr long long stride = X_STRIDES[AXIS], dx_stride = DX_STRIDES[AXIS];
  const Index row = global_thread<THREADS, Index>();
  const float share = share_of_row(counts);
  if (row >= rows_of(n)) return;
  const int target = targets[offset_of_row<TARGETS_STRIDES>(row)];
  x += offset_of_row<X_STRIDES>(row);
  dx += offset_of_row<DX_STRIDES>(row);

  float maximum = -infinity();
  for (Index c = 0; c < ROW; ++c) maximum = fmaxf(maximum, to_float(x[c * Index(stride)]));
  float sum = 0.0f;
  for (Index c = 0; c < ROW; ++c) sum += expf(to_float(x[c * Index(stride)]) - maximum);
  const float factor = factor_of(dloss, offset_of_row<DLOSS_STRIDES>(row), share);
  for (Index c = 0; c < ROW; ++c) {
    const float probability = expf(to_float(x[c * Index(stride)]) - maximum) / sum;
    float gradient = factor * (probability - (c == target ? 1.0f : 0.0f));
    if (!is_class(target)) gradient = nan();
    if (target == IGNORE) gradient = 0.0f;
    TDX* const element = dx + c * Index(dx_stride);
    float old = 0.0f;
    if constexpr (BETA != SCALE_ZERO) old = to_float(*element);
    *element = from_float<TDX>(blended<ALPHA, BETA>(gradient, alpha, old, beta));
  }
}
