// CTC loss: what its kernels and those of its gradient share. generator/operations/ctc_loss.h has the formulas.
//
// From the prelude: STEPS, CLASSES, LABELS, BLANK, HAS_SCORES (else x holds logarithms of probabilities),
// ZEROES_INFINITE, and for each operand its type, its strides, and where there may be none WITH_...
#include "lib/index.cuh"
#include "lib/math.cuh"
#include "lib/types.cuh"

// States of an image whose labels all count.
__device__ __forceinline__ int all_states() {
  return 2 * static_cast<int>(LABELS) + 1;
}

// An image's steps and labels that count.
struct CtcImage {
  Index image;
  int steps, labels;

  __device__ __forceinline__ CtcImage(Index image, const int* input_lengths, const int* target_lengths)
      : image(image), steps(STEPS), labels(LABELS) {
    if constexpr (WITH_INPUT_LENGTHS) {
      steps = min(max(input_lengths[image * Index(INPUT_LENGTHS_STRIDE_N)], 0), steps);
    }
    if constexpr (WITH_TARGET_LENGTHS) {
      labels = min(max(target_lengths[image * Index(TARGET_LENGTHS_STRIDE_N)], 0), labels);
    }
  }
  // Labels, with blanks around them.
  __device__ __forceinline__ int states() const { return 2 * labels + 1; }

  // The class of a state.
  __device__ __forceinline__ int class_of(const int* targets, int state) const {
    if (state % 2 == 0) return BLANK;
    return targets[image * Index(TARGETS_STRIDE_N) + state / 2 * Index(TARGETS_STRIDE_L)];
  }
  // Whether the class of a state, `c`, is none: a label that is no class, or the blank.
  __device__ __forceinline__ static bool is_none(int state, int c) {
    return c < 0 || c >= CLASSES || (state % 2 == 1 && c == BLANK);
  }
  // Whether paths come to a label from the one before, without a blank between them.
  __device__ __forceinline__ bool skips(const int* targets, int state) const {
    return state % 2 == 1 && state >= 3 && class_of(targets, state) != class_of(targets, state - 2);
  }
  __device__ __forceinline__ Index offset_in_x(int step, int c) const {
    return image * Index(X_STRIDE_N) + step * Index(X_STRIDE_T) + c * Index(X_STRIDE_C);
  }
  __device__ __forceinline__ Index offset_in_prefixes(int step, int state) const {
    return image * Index(PREFIXES_STRIDE_N) + step * Index(PREFIXES_STRIDE_T) + state * Index(PREFIXES_STRIDE_S);
  }
};

// A step's softmax over the classes: the largest score, and the logarithm of the sum of the exponentials of what scores
// are below it. Both are 0 of logarithms of probabilities.
struct CtcStep {
  float largest, log_sum;

  __device__ __forceinline__ float log_probability(float x) const { return x - largest - log_sum; }
};

// The value of a state from `before`, what is known of the way to it, -inf where there is none.
__device__ __forceinline__ float with_probability(float before, float probability) {
  return before == -infinity() && !is_nan(probability) ? before : before + probability;
}
