// Gradient of CTC loss, the plain way: one thread an image, step by step from the last one, class by class. The trusted
// kernel of ctc_loss_backward: others are checked against it. Parameters: ctc_loss_backward_simple.cpp.
#include "lib/ctc_loss_simple.cuh"
#include "lib/store.cuh"

// The suffixes of the step before, from `ways`: the probabilities of the states at a step and behind it, of which the
// largest is taken.
__device__ void leave_step(const int* targets, const CtcImage& image, const float* ways, float* suffixes) {
  const int states = image.states();
  float largest = -infinity();
  for (int state = 0; state < states; ++state) largest = fmaxf(largest, ways[state]);
  const float base = largest == -infinity() ? 0.0f : largest;
  for (int state = 0; state < states; ++state) {
    const bool skips = state + 2 < states && image.skips(targets, state + 2);
    suffixes[state] = log_sum_of(ways[state], state + 1 < states ? ways[state + 1] : -infinity(),
                                 skips ? ways[state + 2] : -infinity()) -
                      base;
  }
}

// Makes of the logarithms of the states' parts in all paths their exponentials, and gives the sum. `has_path`: whether
// one of them is none.
__device__ float take_parts(float* parts, int states, bool& has_path) {
  float largest = -infinity(), sum = 0.0f;
  for (int state = 0; state < states; ++state) largest = max_nan(largest, parts[state]);
  has_path = largest != -infinity();
  for (int state = 0; state < states; ++state) {
    parts[state] = expf(parts[state] - largest);
    sum += parts[state];
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ctc_loss_backward_simple(const TX* x, const int* targets, const int* input_lengths, const int* target_lengths,
                             const TDLOSS* dloss, const float* prefixes, TDX* dx, float* workspace, float alpha,
                             float beta, UserArguments user, long long n) {
  const Index number = global_thread<THREADS, Index>();
  if (number >= (DYNAMIC_N ? n : N)) return;
  const CtcImage image(number, input_lengths, target_lengths);
  const int states = image.states();
  float* const suffixes = workspace + static_cast<long long>(number) * 2 * all_states();
  float* const parts = suffixes + all_states();
  const float factor = WITH_DLOSS ? to_float(dloss[number * Index(DLOSS_STRIDE_N)]) : 1.0f;
  const OutputArguments output = {alpha, beta, user};
  const auto store = [&](int step, int c, float value) {
    const Index offset = number * Index(DX_STRIDE_N) + step * Index(DX_STRIDE_T) + c * Index(DX_STRIDE_C);
    const long long element = (static_cast<long long>(number) * static_cast<int>(STEPS) + step) * CLASSES + c;
    store_element(dx + offset, element, value, 0, output);
  };
  for (int step = STEPS - 1; step >= image.steps; --step) {
    for (int c = 0; c < CLASSES; ++c) store(step, c, 0.0f);
  }
  for (int state = 0; state < states; ++state) suffixes[state] = state + 2 >= states ? 0.0f : -infinity();
  for (int step = image.steps - 1; step >= 0; --step) {
    const CtcStep row = step_of(x, image, step);
    for (int state = 0; state < states; ++state) {
      const bool is_none = CtcImage::is_none(state, image.class_of(targets, state));
      parts[state] =
          is_none ? nan() : with_probability(suffixes[state], prefixes[image.offset_in_prefixes(step, state)]);
    }
    bool has_path;
    const float sum = take_parts(parts, states, has_path);
    for (int c = 0; c < CLASSES; ++c) {
      float part = 0.0f;
      for (int state = 0; state < states; ++state) {
        if (image.class_of(targets, state) == c) part += parts[state];
      }
      const float p = expf(row.log_probability(to_float(x[image.offset_in_x(step, c)])));
      const float without_path = ZEROES_INFINITE ? 0.0f : nan();
      store(step, c, has_path ? factor * (p - part / sum) : without_path);
    }
    for (int state = 0; state < states; ++state) {
      const int c = image.class_of(targets, state);
      parts[state] = with_probability(suffixes[state], state_probability(x, image, step, row, state, c));
    }
    leave_step(targets, image, parts, suffixes);
  }
}
