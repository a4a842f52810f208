// Cross entropy of rows whose logits stand near each other: LANES threads share a row, lanes of a warp or a block, and
// read it once, with running maxima and sums, and again where targets are smoothed. VECTOR divides ROW.
// Parameters: cross_entropy_forward_rows.cpp.
#include "lib/cross_entropy_loss.cuh"
#include "lib/cross_entropy_weights.cuh"
#include "lib/row_elements.cuh"
#include "lib/shared_statistics.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_forward_rows(const TX* x, const int* targets, const float* weights, TLOSS* losses, LossPart* parts,
                               float alpha, float beta, UserArguments user, float smoothing, long long n) {
  const Index row = LANES <= 32 ? global_thread<THREADS, Index>() / LANES : static_cast<Index>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % LANES;
  const bool active = row < rows_of(n);  // idle threads stay for the reductions
  const int target = active ? targets[row_offset<TARGETS_OUTER_STRIDES>(row)] : IGNORE;
  x += row_offset<X_OUTER_STRIDES>(row);

  RowStatistics mine = RowStatistics::of_nothing();
  if (target != IGNORE) {
#pragma unroll 4
    for (int i = lane * VECTOR; i < ROW; i += LANES * VECTOR) {
      float logits[VECTOR];
      as_floats(load_elements(x + i * Index(X_STEP), user), logits);
      mine.add(logits);
    }
  }
  const RowStatistics all = of_whole_row(mine);
  float of_classes = 0.0f;
  if constexpr (SMOOTHS) {
    const float log_sum = logf(all.sum);
    if (target != IGNORE) {
#pragma unroll 4
      for (int i = lane * VECTOR; i < ROW; i += LANES * VECTOR) {
        float logits[VECTOR];
        as_floats(load_elements(x + i * Index(X_STEP), user), logits);
        const Vector<float, VECTOR> own = weights_of(weights, i);
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) {
          of_classes += part_of_class(own[j], smoothing, surprise_of(logits[j], all.maximum, log_sum));
        }
      }
    }
    of_classes = row_reduce(of_classes, Sum());
  }
  const bool first = active && lane == 0;
  const float loss = first && target != IGNORE
                         ? loss_of(x, Index(X_STEP), target, all.maximum, all.sum, weights, of_classes, smoothing, user)
                         : 0.0f;
  take_loss(losses, parts, row_offset<LOSS_OUTER_STRIDES>(row), loss, first, share_of(weights, target),
            {alpha, beta, user});
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    cross_entropy_forward_rows_reduce(const LossPart* parts, TLOSS* loss, float alpha, float beta, UserArguments user,
                                      long long n) {
  add_parts(parts, ceil_div<Index>(rows_of(n), THREADS / LANES), loss, {alpha, beta, user});
}
