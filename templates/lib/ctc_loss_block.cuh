// CTC loss by a block an image: what its kernels and those of its gradient share. A thread takes every THREADS-th
// state.
//
// From the prelude: THREADS; STATES, of a thread at a time; ONE_PASS, whether these are all; ROWS_IN_SHARED;
// ROW_THREADS, of a block that takes the softmax of steps, a warp each.
#include "lib/block_memory.cuh"
#include "lib/ctc_loss.cuh"
#include "lib/reduce.cuh"

static_assert(STATES <= 32, "a bit for each state");

// A number of each state of an image at two steps, one after the other, less one of the step before. The
// largest of a step is that of the warps': the barrier that the states wait for is enough for both.
struct StateRows {
  static constexpr int WARPS = THREADS / 32;
  float* rows;
  float* largest;  // of the warps, at two steps

  // `workspace`: rows of all images, where they are not in shared memory.
  __device__ __forceinline__ StateRows(const CtcImage& image, float* workspace, float (&shared)[2 * WARPS])
      : rows(&block_memory<float>()), largest(shared) {
    if constexpr (!ROWS_IN_SHARED) rows = workspace + static_cast<long long>(image.image) * 2 * all_states();
  }
  __device__ __forceinline__ float* row(int step) const { return rows + step % 2 * all_states(); }

  __device__ __forceinline__ void leave_largest(int step, float value) const {
    value = lanes_reduce<32>(value, Maximum());
    if (threadIdx.x % 32 == 0) largest[step % 2 * WARPS + static_cast<int>(threadIdx.x) / 32] = value;
  }
  // The largest of a step, 0 where no path reaches a state.
  __device__ __forceinline__ float base_of(int step) const {
    float all = -infinity();
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) all = fmaxf(all, largest[step % 2 * WARPS + warp]);
    return all == -infinity() ? 0.0f : all;
  }
};

// log2(2^a + 2^b + 2^c); -inf of none.
__device__ __forceinline__ float log_sum_2(float a, float b, float c) {
  const float largest = fmaxf(fmaxf(a, b), c), base = largest == -infinity() ? 0.0f : largest;
  return base + log_2(power_of_2(a - base) + power_of_2(b - base) + power_of_2(c - base));
}

// The number of a state, -inf where there is none.
__device__ __forceinline__ float at_state(const float* row, int state, int states) {
  return state >= 0 && state < states ? row[state] : -infinity();
}

// Leaves the softmax of each step of each image in `steps`.
__device__ __forceinline__ void find_steps(const TX* x, CtcStep* steps, long long n) {
  const Index line = static_cast<Index>(blockIdx.x) * (ROW_THREADS / 32) + static_cast<Index>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const long long images = DYNAMIC_N ? n : N;
  if (line >= images * static_cast<int>(STEPS)) return;
  Index image = line;
  const int step = static_cast<int>(take_coordinate(image, STEPS));
  const TX* const scores = x + image * Index(X_STRIDE_N) + step * Index(X_STRIDE_T);
  float largest = -infinity(), sum = 0.0f;
  for (int c = lane; c < CLASSES; c += 32) largest = fmaxf(largest, to_float(scores[c * Index(X_STRIDE_C)]));
  largest = lanes_reduce<32>(largest, Maximum());
  for (int c = lane; c < CLASSES; c += 32) sum += expf(to_float(scores[c * Index(X_STRIDE_C)]) - largest);
  sum = lanes_reduce<32>(sum, Sum());
  if (lane == 0) steps[line] = {largest, logf(sum)};
}

// The softmax of a step, as find_steps() left it.
__device__ __forceinline__ CtcStep step_of(const CtcStep* steps, const CtcImage& image, int step) {
  if constexpr (!HAS_SCORES) return {0.0f, 0.0f};
  return steps[static_cast<long long>(image.image) * static_cast<int>(STEPS) + step];
}

// Inputs of a thread's states at a step; prefixes only for the gradient. Nothing is computed of it before it is
// needed, so that a thread does not wait for it.
struct StateValues {
  CtcStep row;
  TX scores[STATES];
  float prefixes[STATES];
};

// A thread's states, from the `first` of the block on: their classes, and whether paths skip to them, and from them.
struct ThreadStates {
  int first, classes[STATES];
  unsigned skips_to = 0, skips_from = 0, none = 0;

  __device__ __forceinline__ ThreadStates(const CtcImage& image, const int* targets, int first_of_block)
      : first(first_of_block + static_cast<int>(threadIdx.x)) {
#pragma unroll
    for (int i = 0; i < STATES; ++i) {
      const int state = state_of(i);
      const bool is_there = state < image.states();
      classes[i] = is_there ? image.class_of(targets, state) : BLANK;
      if (image.is_none(state, classes[i])) {
        none |= is_there ? 1u << i : 0;
        classes[i] = BLANK;
      }
      if (is_there && image.skips(targets, state)) skips_to |= 1u << i;
      if (state + 2 < image.states() && image.skips(targets, state + 2)) skips_from |= 1u << i;
    }
  }
  __device__ __forceinline__ int state_of(int i) const {
    return first + i * THREADS;
  }
  __device__ __forceinline__ bool is_skipped_to(int i) const {
    return (skips_to >> i & 1u) != 0;
  }
  __device__ __forceinline__ bool is_skipped_from(int i) const {
    return (skips_from >> i & 1u) != 0;
  }

  __device__ __forceinline__ void load(const TX* x, const CtcImage& image, const CtcStep* steps, int step,
                                       StateValues& values) const {
    values.row = step_of(steps, image, step);
#pragma unroll
    for (int i = 0; i < STATES; ++i) {
      if (state_of(i) < image.states()) values.scores[i] = x[image.offset_in_x(step, classes[i])];
    }
  }
  // Whether the class of a state is none.
  __device__ __forceinline__ bool is_none(int i) const {
    return (none >> i & 1u) != 0;
  }
  // The logarithm of the probability of a state's class; NaN where it is none.
  __device__ __forceinline__ float probability(const StateValues& values, int i) const {
    return is_none(i) ? nan() : in_base_2(values.row.log_probability(to_float(values.scores[i])));
  }
};

// Inputs that load(states, step, values) reads for all states of a thread, a step ahead where they are taken in one
// pass.
template <class Load>
struct StepValues {
  const CtcImage& image;
  const int* targets;
  const Load& load;
  const ThreadStates all;  // in one pass
  StateValues next;

  __device__ __forceinline__ StepValues(const CtcImage& image, const int* targets, const Load& load)
      : image(image), targets(targets), load(load), all(image, targets, 0) {}

  // Starts to read what a step needs, if there is such a step.
  __device__ __forceinline__ void bring(int step) {
    if (ONE_PASS && step >= 0 && step < image.steps) load(all, step, next);
  }
  // Calls take(states, values) for all of them.
  template <class Take>
  __device__ __forceinline__ void take(int step, const Take& take) {
    if constexpr (ONE_PASS) {
      take(all, next);
    } else {
#pragma unroll 1
      for (int first = 0; first < image.states(); first += THREADS * STATES) {
        const ThreadStates some(image, targets, first);
        load(some, step, next);
        take(some, next);
      }
    }
  }
};
