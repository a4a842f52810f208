// Normalisation of a row: what becomes of an element.
//
// From the prelude, besides what lib/row_moments.cuh has: ALPHA, BETA, ADD and RELU (the epilogue), ACTIVATION (behind
// it), and HAS_W, HAS_B, HAS_MEAN and the like: which of the optional operands there are.
#include "lib/activation.cuh"
#include "lib/blend.cuh"
#include "lib/row_moments.cuh"

// w xhat + b.
__device__ __forceinline__ float normalised(float x, const RowStatistics& row, float w, float b) {
  float value = (RMS ? x : x - row.mean) * row.inv_deviation;
  if constexpr (HAS_W) value *= w;
  if constexpr (HAS_B) value += b;
  return value;
}

// The new value of an element. NaN stays NaN.
__device__ __forceinline__ float finished(float value, float old, float residual, float alpha, float beta,
                                          const ActivationNumbers& numbers) {
  value = blended<ALPHA, BETA>(value, alpha, old, beta);
  if constexpr (ADD) value += residual;
  if constexpr (RELU) value = value < 0.0f ? 0.0f : value;
  return activated<ACTIVATION>(value, numbers.slope, numbers.offset, numbers.low, numbers.high);
}

// Where the statistics of a row are stored, and `momentum`.
struct StatisticsArguments {
  float *mean, *inv_deviation, *running_mean, *running_variance;
  float momentum;
};

__device__ __forceinline__ void store_statistics(const RowStatistics& row, const StatisticsArguments& to) {
  if constexpr (HAS_MEAN) *to.mean = row.mean;
  if constexpr (HAS_INV_DEVIATION) *to.inv_deviation = row.inv_deviation;
  if constexpr (HAS_RUNNING_MEAN) {
    *to.running_mean = (1.0f - to.momentum) * *to.running_mean + to.momentum * row.mean;
    *to.running_variance = (1.0f - to.momentum) * *to.running_variance + to.momentum * row.variance;
  }
}
