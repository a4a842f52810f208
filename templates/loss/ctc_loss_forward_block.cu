// CTC loss by a block an image: its threads take the states of a step, and find those of the step before in shared
// memory, or in the workspace if they are many. The softmax of all steps comes first, a warp each. Parameters:
// ctc_loss_forward_block.cpp.
#include "lib/ctc_loss_block.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    ctc_loss_forward_block_steps(const TX* x, const int* targets, const int* input_lengths, const int* target_lengths,
                                 TLOSS* loss, float* prefixes, CtcStep* steps, float* workspace, float alpha,
                                 float beta, UserArguments user, long long n) {
  find_steps(x, steps, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ctc_loss_forward_block(const TX* x, const int* targets, const int* input_lengths, const int* target_lengths,
                           TLOSS* loss, float* prefixes, CtcStep* steps, float* workspace, float alpha, float beta,
                           UserArguments user, long long n) {
  __shared__ float largest_of_warps[2 * StateRows::WARPS];
  const CtcImage image(static_cast<Index>(blockIdx.x), input_lengths, target_lengths);
  const StateRows rows(image, workspace, largest_of_warps);
  const int states = image.states();
  const auto load = [&](const ThreadStates& own, int step, StateValues& values) {
    own.load(x, image, steps, step, values);
  };
  StepValues values(image, targets, load);
  values.bring(0);
  double offsets = 0.0;  // of all steps so far
  const auto store_prefix = [&](int step, int state, float value) {
    if constexpr (WITH_PREFIXES) prefixes[image.offset_in_prefixes(step, state)] = value;
  };
#pragma unroll 1
  for (int step = 0; step < image.steps; ++step) {
    const float* const last = rows.row(step + 1);
    float* const now = rows.row(step);
    const float base = step > 0 ? rows.base_of(step + 1) : 0.0f;
    offsets += base;
    float largest = -infinity();
    values.take(step, [&](const ThreadStates& own, const StateValues& read) {
#pragma unroll
      for (int i = 0; i < STATES; ++i) {
        const int state = own.state_of(i);
        if (state >= states) continue;
        float before = state < 2 ? 0.0f : -infinity();
        if (step > 0) {
          const float stays = last[state];
          store_prefix(step - 1, state, (stays - base) * LN_2);
          before = log_sum_2(stays, at_state(last, state - 1, states),
                             own.is_skipped_to(i) ? last[state - 2] : -infinity()) -
                   base;
        }
        const float value = with_probability(before, own.probability(read, i));
        now[state] = value;
        largest = fmaxf(largest, value);
      }
    });
    rows.leave_largest(step, largest);
    values.bring(step + 1);
    __syncthreads();
  }

  const int last_step = image.steps - 1;
  const float* const last = rows.row(last_step + 2);
  const float base = image.steps > 0 ? rows.base_of(last_step) : 0.0f;
  for (int step = max(last_step, 0); WITH_PREFIXES && step < STEPS; ++step) {
    for (int state = static_cast<int>(threadIdx.x); state < states; state += THREADS) {
      store_prefix(step, state, step == last_step ? (last[state] - base) * LN_2 : -infinity());
    }
  }
  for (int step = 0; WITH_PREFIXES && step < STEPS; ++step) {
    for (int state = states + static_cast<int>(threadIdx.x); state < all_states(); state += THREADS) {
      store_prefix(step, state, -infinity());
    }
  }
  if (threadIdx.x != 0) return;
  float sum = states == 1 ? 0.0f : -infinity();
  if (image.steps > 0) {
    const float rest = log_sum_2(last[states - 1], at_state(last, states - 2, states), -infinity());
    sum = static_cast<float>((offsets + rest) * 0.6931471805599453);
  }
  const float result = ZEROES_INFINITE && sum == -infinity() ? 0.0f : -sum;
  store_result(loss, image.image * Index(LOSS_STRIDE_N), result, 0, OutputArguments{alpha, beta, user});
}
