// Steps of CTC loss the plain way, for trusted kernels: natural logarithms, one score after the other.
#include "lib/ctc_loss.cuh"

__device__ CtcStep step_of(const TX* x, const CtcImage& image, int step) {
  if constexpr (!HAS_SCORES) return {0.0f, 0.0f};
  float largest = -infinity(), sum = 0.0f;
  for (int c = 0; c < CLASSES; ++c) largest = fmaxf(largest, to_float(x[image.offset_in_x(step, c)]));
  for (int c = 0; c < CLASSES; ++c) sum += expf(to_float(x[image.offset_in_x(step, c)]) - largest);
  return {largest, logf(sum)};
}

// The logarithm of the probability of a state's class; NaN for a label that is no class, or the blank.
__device__ float state_probability(const TX* x, const CtcImage& image, int step, const CtcStep& row, int state, int c) {
  if (CtcImage::is_none(state, c)) return nan();
  return row.log_probability(to_float(x[image.offset_in_x(step, c)]));
}

// log(exp(a) + exp(b) + exp(c)); -inf of none.
__device__ float log_sum_of(float a, float b, float c) {
  const float largest = fmaxf(fmaxf(a, b), c), base = largest == -infinity() ? 0.0f : largest;
  return base + logf(expf(a - base) + expf(b - base) + expf(c - base));
}
