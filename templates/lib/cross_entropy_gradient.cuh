// The gradient of cross entropy: dx[c] = dloss * (softmax(x)[c] - (c == target)), 0 in rows that do not count.
//
// From the prelude, besides lib/cross_entropy.cuh: HAS_DLOSS, and T and strides of the operand DLOSS.
#include "lib/cross_entropy.cuh"

// Rows that count among those of this block: of COUNT_BLOCKS, each with its share of all rows.
__device__ __forceinline__ void count_rows(const int* targets, int* counts, long long n) {
  __shared__ PartScratch scratch;
  const Index rows = rows_of(n);
  LossPart mine = {0.0f, 0};
  for (Index row = static_cast<Index>(blockIdx.x) * COUNT_THREADS + static_cast<Index>(threadIdx.x); row < rows;
       row += Index(COUNT_BLOCKS) * COUNT_THREADS) {
    mine.rows += targets[offset_of_row<TARGETS_STRIDES>(row)] != IGNORE ? 1 : 0;
  }
  const LossPart all = block_part<COUNT_THREADS>(mine, scratch);
  if (threadIdx.x == 0) counts[blockIdx.x] = all.rows;
}

// What a row's gradient is of its share: 1, or for the mean 1 / the number of rows that count. By whole warps.
__device__ __forceinline__ float share_of_row(const int* counts) {
  if constexpr (REDUCTION != REDUCTION_MEAN) return 1.0f;
  int mine = 0;
#pragma unroll
  for (int i = 0; i < COUNT_BLOCKS; i += 32) mine += counts[i + static_cast<int>(threadIdx.x % 32)];
  return 1.0f / static_cast<float>(warp_total(mine));
}

// dloss of a row whose dlosses stand at `offset`, times its share.
__device__ __forceinline__ float factor_of(const TDLOSS* dloss, Index offset, float share) {
  if constexpr (!HAS_DLOSS) return share;
  return to_float(dloss[REDUCTION == REDUCTION_NONE ? offset : Index(0)]) * share;
}

// What turns the logits of a row into their gradients.
struct RowGradient {
  float maximum, inverse_sum, factor;
  int target;

  __device__ __forceinline__ RowGradient() {}
  __device__ __forceinline__ RowGradient(float maximum_, float sum, float factor_, int target_)
      : maximum(maximum_), inverse_sum(1.0f / sum), factor(is_class(target_) ? factor_ : nan()), target(target_) {}

  __device__ __forceinline__ float operator()(float logit, int c) const {
    if (target == IGNORE) return 0.0f;
    const float probability = quick_exp(logit - maximum) * inverse_sum;
    return factor * (c == target ? probability - 1.0f : probability);
  }
};
