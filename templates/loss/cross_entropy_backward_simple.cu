// The gradient of cross entropy, the plain way: one thread a row, three passes, any strides. The trusted kernel of
// cross_entropy_backward. Parameters: cross_entropy_backward_simple.cpp.
#include "lib/cross_entropy_gradient.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_backward_simple_count(const int* targets, const float* weights, Share* counts, long long n) {
  count_rows(targets, weights, counts, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_simple(const TX* x, const int* targets, const float* weights, const TDLOSS* dloss, TDX* dx,
                                  const Share* counts, float alpha, float beta, UserArguments user, float smoothing,
                                  long long n) {
  constexpr long long stride = X_STRIDES[AXIS], dx_stride = DX_STRIDES[AXIS];
  const Index row = global_thread<THREADS, Index>();
  const float part = part_of_all(counts);
  if (row >= rows_of(n)) return;
  const int target = targets[offset_of_row<TARGETS_STRIDES>(row)];
  x += offset_of_row<X_STRIDES>(row);
  dx += offset_of_row<DX_STRIDES>(row);

  float maximum = -infinity();
  for (Index c = 0; c < ROW; ++c) maximum = fmaxf(maximum, user_entered(x[c * Index(stride)], 0, user));
  float sum = 0.0f;
  for (Index c = 0; c < ROW; ++c) sum += expf(user_entered(x[c * Index(stride)], 0, user) - maximum);
  float total = 0.0f;
  if constexpr (SMOOTHS) {
    for (Index c = 0; c < ROW; ++c) total += weight_of(weights, c);
  }
  const RowWeights by(weights, target, total, smoothing);
  const float factor = factor_of(dloss, offset_of_row<DLOSS_STRIDES>(row), part);
  for (Index c = 0; c < ROW; ++c) {
    const float probability = expf(user_entered(x[c * Index(stride)], 0, user) - maximum) / sum;
    const float gradient =
        target == IGNORE ? 0.0f : factor * by.gradient(probability, weight_of(weights, c), c == target);
    store_element(dx + c * Index(dx_stride), number_of(row, c), gradient, 0, {alpha, beta, user});
  }
}
