// The gradient of cross entropy: dx[c] = dloss * (all * softmax(x)[c] - own * (c == target) - smoothing / ROW *
// weight[c]), with own = (1 - smoothing) * weight[target] and all = own + smoothing / ROW * sum of weight; 0 in rows
// that do not count.
//
// From the prelude, besides lib/cross_entropy.cuh: HAS_DLOSS, and T and strides of the operand DLOSS.
#include "lib/cross_entropy.cuh"

// Sums the weights of this block's rows: one of COUNT_BLOCKS, each with its part of all rows.
__device__ __forceinline__ void count_rows(const int* targets, const float* weights, Share* counts, long long n) {
  __shared__ PartScratch scratch;
  const Index rows = rows_of(n);
  LossPart mine = {0.0f, 0};
  for (Index row = static_cast<Index>(blockIdx.x) * COUNT_THREADS + static_cast<Index>(threadIdx.x); row < rows;
       row += Index(COUNT_BLOCKS) * COUNT_THREADS) {
    mine.rows += share_of(weights, targets[offset_of_row<TARGETS_STRIDES>(row)]);
  }
  const LossPart all = block_part<COUNT_THREADS>(mine, scratch);
  if (threadIdx.x == 0) counts[blockIdx.x] = all.rows;
}

// Factor of the gradients of all rows: 1, or for the mean 1 over the sum of their weights. By whole warps.
__device__ __forceinline__ float part_of_all(const Share* counts) {
  if constexpr (REDUCTION != REDUCTION_MEAN) return 1.0f;
  Share mine = 0;
#pragma unroll
  for (int i = 0; i < COUNT_BLOCKS; i += 32) mine += counts[i + static_cast<int>(threadIdx.x % 32)];
  return 1.0f / static_cast<float>(warp_total(mine));
}

// dloss of a row whose dlosses stand at `offset`, times part_of_all().
__device__ __forceinline__ float factor_of(const TDLOSS* dloss, Index offset, float part) {
  if constexpr (!HAS_DLOSS) return part;
  return to_float(dloss[REDUCTION == REDUCTION_NONE ? offset : Index(0)]) * part;
}

// Factors that make the gradients of a row from its probabilities. `total`: the sum of all weights, with SMOOTHS.
struct RowWeights {
  float own, each, all;

  __device__ __forceinline__ RowWeights(const float* weights, int target, float total, float smoothing)
      : own(is_class(target) ? weight_of(weights, target) : nan()),
        each(SMOOTHS ? smoothing / static_cast<float>(ROW) : 0.0f) {
    if constexpr (SMOOTHS) own *= 1.0f - smoothing;
    all = SMOOTHS ? own + each * total : own;
  }

  // Gradient of a class of weight `weight`, which is read with SMOOTHS alone.
  __device__ __forceinline__ float gradient(float probability, float weight, bool is_target) const {
    if constexpr (!SMOOTHS) return own * (is_target ? probability - 1.0f : probability);
    return all * probability - (is_target ? own : 0.0f) - each * weight;
  }
};

// Function from the logits of a row to their gradients.
struct RowGradient {
  float maximum, inverse_sum, factor;
  int target;
  RowWeights weights;

  __device__ __forceinline__ RowGradient(float maximum_, float sum, float factor_, int target_,
                                         const RowWeights& weights_)
      : maximum(maximum_), inverse_sum(1.0f / sum), factor(factor_), target(target_), weights(weights_) {}

  // Gradient of class `c`, which has weight `weight`.
  __device__ __forceinline__ float operator()(float logit, int c, float weight) const {
    if (target == IGNORE) return 0.0f;
    return factor * weights.gradient(quick_exp(logit - maximum) * inverse_sum, weight, c == target);
  }
};
