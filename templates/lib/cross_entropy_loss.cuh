// The losses of rows, stored one by one or added up.
//
// From the prelude: lib/cross_entropy.cuh, ALPHA, BETA, TLOSS.
#include "lib/cross_entropy.cuh"
#include "lib/store.cuh"

// -log(softmax) of a logit. log(sum) + maximum in one would lose digits where |maximum| is large.
__device__ __forceinline__ float surprise_of(float logit, float maximum, float log_sum) {
  return maximum - logit + log_sum;
}

// Share of a class of this weight in a loss where targets are smoothed.
__device__ __forceinline__ float part_of_class(float weight, float smoothing, float surprise) {
  return weight * (smoothing / static_cast<float>(ROW)) * surprise;
}

// The loss of a row that counts; `row`: its first logit. `all`: with SMOOTHS, the parts of all classes.
__device__ __forceinline__ float loss_of(const TX* row, Index stride, int target, float maximum, float sum,
                                         const float* weights, float all, float smoothing, const UserArguments& user) {
  if (!is_class(target)) return nan();
  float own = surprise_of(user_entered(row[target * stride], 0, user), maximum, logf(sum));
  if constexpr (HAS_WEIGHTS) own *= weight_of(weights, target);
  return SMOOTHS ? (1.0f - smoothing) * own + all : own;
}

// Takes the loss of a thread's row (0 and false for a thread without one): stores it, or, for mean and sum, the part of
// the block, of which the row has `share`. All threads of the block must take part.
__device__ __forceinline__ void take_loss(TLOSS* losses, LossPart* parts, Index offset, float loss, bool has_row,
                                          Share share, const OutputArguments& output) {
  if constexpr (REDUCTION == REDUCTION_NONE) {
    if (has_row) store_result(losses, offset, loss, 0, output);
  } else {
    __shared__ PartScratch scratch;
    const LossPart part = block_part<THREADS>({loss, has_row ? share : Share(0)}, scratch);
    if (threadIdx.x == 0) parts[blockIdx.x] = part;
  }
}

// The loss from the parts of `blocks` blocks, by one block, in a fixed order.
__device__ __forceinline__ void add_parts(const LossPart* parts, Index blocks, TLOSS* loss,
                                          const OutputArguments& output) {
  __shared__ PartScratch scratch;
  LossPart mine = {0.0f, 0};
  for (Index i = static_cast<Index>(threadIdx.x); i < blocks; i += COUNT_THREADS) {
    mine.sum += parts[i].sum;
    mine.rows += parts[i].rows;
  }
  const LossPart all = block_part<COUNT_THREADS>(mine, scratch);
  if (threadIdx.x != 0) return;
  const float value = REDUCTION == REDUCTION_MEAN ? all.sum / static_cast<float>(all.rows) : all.sum;
  store_result(loss, Index(0), value, 0, output);
}
