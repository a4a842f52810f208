// Cross entropy of rows that stand side by side, NCHW for instance: a thread takes a row, neighbouring threads
// neighbouring rows, and reads it once with a running maximum and sum, and again where targets are smoothed.
// Parameters: cross_entropy_forward_strided.cpp.
#include "lib/cross_entropy_loss.cuh"
#include "lib/rows.cuh"
#include "lib/softmax.cuh"

static_assert(VECTOR == 1, "a thread takes a row");

// Blocks that rows side by side take.
__device__ __forceinline__ Index slices() {
  return ceil_div<Index>(INNER, THREADS);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_forward_strided(const TX* x, const int* targets, const float* weights, TLOSS* losses, LossPart* parts,
                                  float alpha, float beta, UserArguments user, float smoothing, long long) {
  const Index outer = static_cast<Index>(blockIdx.x) / slices();
  const Index column = static_cast<Index>(blockIdx.x) % slices() * THREADS + static_cast<Index>(threadIdx.x);
  const bool active = column < INNER;  // idle threads stay for the reductions
  const int target = active ? targets[row_offset<TARGETS_OUTER_STRIDES>(outer) + column * Index(TARGETS_STEP)] : IGNORE;
  float loss = 0.0f;
  if (target != IGNORE) {
    x += row_offset<X_OUTER_STRIDES>(outer) + column * Index(X_STEP);
    RowStatistics row = RowStatistics::of_nothing();
    constexpr int TOGETHER = 4;  // logits that travel together
    for (Index c = 0; c < ROW; c += TOGETHER) {
      float logits[TOGETHER];
#pragma unroll
      for (int i = 0; i < TOGETHER; ++i) {
        logits[i] = c + i < ROW ? user_entered(x[(c + i) * Index(X_AXIS_STRIDE)], 0, user) : -infinity();
      }
      row.add(logits);
    }
    float all = 0.0f;
    if constexpr (SMOOTHS) {
      const float log_sum = logf(row.sum);
#pragma unroll TOGETHER
      for (Index c = 0; c < ROW; ++c) {
        const float surprise = surprise_of(user_entered(x[c * Index(X_AXIS_STRIDE)], 0, user), row.maximum, log_sum);
        all += part_of_class(weight_of(weights, c), smoothing, surprise);
      }
    }
    loss = loss_of(x, Index(X_AXIS_STRIDE), target, row.maximum, row.sum, weights, all, smoothing, user);
  }
  take_loss(losses, parts, row_offset<LOSS_OUTER_STRIDES>(outer) + column * Index(LOSS_STEP), loss, active,
            share_of(weights, target), {alpha, beta, user});
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_forward_strided_reduce(const LossPart* parts, TLOSS* loss, float alpha, float beta,
                                         UserArguments user, long long n) {
  add_parts(parts, rows_of(n) / INNER * slices(), loss, {alpha, beta, user});
}
