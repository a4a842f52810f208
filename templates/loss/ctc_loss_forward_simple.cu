// CTC loss, the plain way: one thread an image, step by step and state by state. The trusted kernel of
// ctc_loss_forward: others are checked against it. Parameters: ctc_loss_forward_simple.cpp.
#include "lib/ctc_loss_simple.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    ctc_loss_forward_simple(const TX* x, const int* targets, const int* input_lengths, const int* target_lengths,
                            TLOSS* loss, float* prefixes, float* workspace, float alpha, float beta, UserArguments user,
                            long long n) {
  const Index number = global_thread<THREADS, Index>();
  if (number >= (DYNAMIC_N ? n : N)) return;
  const CtcImage image(number, input_lengths, target_lengths);
  const int states = image.states();
  // Numbers of the states at two steps.
  float* rows[2] = {workspace + static_cast<long long>(number) * 2 * all_states(), nullptr};
  rows[1] = rows[0] + all_states();
  float base = 0.0f;     // the largest number of the last step
  double offsets = 0.0;  // of those before it
  for (int step = 0; step < image.steps; ++step) {
    const CtcStep row = step_of(x, image, step);
    const float* const last = rows[(step + 1) % 2];
    float* const now = rows[step % 2];
    float largest = -infinity();
    offsets += base;
    for (int state = 0; state < states; ++state) {
      float before = state < 2 ? 0.0f : -infinity();
      if (step > 0) {
        before = log_sum_of(last[state], state >= 1 ? last[state - 1] : -infinity(),
                            image.skips(targets, state) ? last[state - 2] : -infinity()) -
                 base;
      }
      const int c = image.class_of(targets, state);
      now[state] = with_probability(before, state_probability(x, image, step, row, state, c));
      largest = fmaxf(largest, now[state]);
    }
    base = largest == -infinity() ? 0.0f : largest;
    for (int state = 0; WITH_PREFIXES && state < all_states(); ++state) {
      prefixes[image.offset_in_prefixes(step, state)] = state < states ? now[state] - base : -infinity();
    }
  }
  for (int step = image.steps; WITH_PREFIXES && step < STEPS; ++step) {
    for (int state = 0; state < all_states(); ++state) prefixes[image.offset_in_prefixes(step, state)] = -infinity();
  }
  float sum = states == 1 ? 0.0f : -infinity();
  if (image.steps > 0) {
    const float* const last = rows[(image.steps + 1) % 2];
    const float rest = log_sum_of(last[states - 1], states > 1 ? last[states - 2] : -infinity(), -infinity());
    sum = static_cast<float>(offsets + rest);
  }
  const float result = ZEROES_INFINITE && sum == -infinity() ? 0.0f : -sum;
  store_result(loss, number * Index(LOSS_STRIDE_N), result, 0, OutputArguments{alpha, beta, user});
}
