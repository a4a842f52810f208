// Cross entropy, the plain way: one thread a row, a maximum and then a sum, any strides. The trusted kernel of
// cross_entropy_forward: others are checked against it. Parameters: cross_entropy_forward_simple.cpp.
#include "lib/cross_entropy_loss.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_forward_simple(const TX* x, const int* targets, const float* weights, TLOSS* losses, LossPart* parts,
                                 float alpha, float beta, UserArguments user, float smoothing, long long n) {
  constexpr long long stride = X_STRIDES[AXIS];
  const Index row = global_thread<THREADS, Index>();
  const bool has_row = row < rows_of(n);
  const int target = has_row ? targets[offset_of_row<TARGETS_STRIDES>(row)] : IGNORE;
  float loss = 0.0f;
  if (target != IGNORE) {
    const TX* const logits = x + offset_of_row<X_STRIDES>(row);
    float maximum = -infinity();
    for (Index c = 0; c < ROW; ++c) maximum = fmaxf(maximum, user_entered(logits[c * Index(stride)], 0, user));
    float sum = 0.0f;
    for (Index c = 0; c < ROW; ++c) sum += expf(user_entered(logits[c * Index(stride)], 0, user) - maximum);
    float all = 0.0f;
    if constexpr (SMOOTHS) {
      const float log_sum = logf(sum);
      for (Index c = 0; c < ROW; ++c) {
        const float surprise = surprise_of(user_entered(logits[c * Index(stride)], 0, user), maximum, log_sum);
        all += part_of_class(weight_of(weights, c), smoothing, surprise);
      }
    }
    loss = loss_of(logits, Index(stride), target, maximum, sum, weights, all, smoothing, user);
  }
  take_loss(losses, parts, offset_of_row<LOSS_STRIDES>(row), loss, has_row, share_of(weights, target),
            {alpha, beta, user});
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_forward_simple_reduce(const LossPart* parts, TLOSS* loss, float alpha, float beta, UserArguments user,
                                        long long n) {
  add_parts(parts, ceil_div<Index>(rows_of(n), THREADS), loss, {alpha, beta, user});
}
