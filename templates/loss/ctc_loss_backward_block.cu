// Gradient of CTC loss: a block an image goes from the last step to the first, and leaves the logarithm of the part of
// each state in all paths; then a block a step subtracts the parts of each class from its probability, label by label
// in order, so that nothing is added atomically. Parameters: ctc_loss_backward_block.cpp.
#include "lib/ctc_loss_block.cuh"
#include "lib/store.cuh"

// The next label of the same class behind each one of an image: -1 for none; less LATER where there is one before.
constexpr int LATER = 1 << 30;

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    ctc_loss_backward_block_labels(const TX* x, const int* targets, const int* input_lengths, const int* target_lengths,
                                   const TDLOSS* dloss, const float* prefixes, TDX* dx, CtcStep* steps,
                                   float* workspace, float* logs, int* chains, float alpha, float beta,
                                   UserArguments user, long long n) {
  const Index place = global_thread<ROW_THREADS, Index>();
  if (place >= (DYNAMIC_N ? n : N) * static_cast<long long>(static_cast<int>(LABELS))) return;
  Index number = place;
  const int label = static_cast<int>(take_coordinate(number, LABELS));
  const CtcImage image(number, input_lengths, target_lengths);
  const int c = image.class_of(targets, 2 * label + 1);
  int next = label + 1, before = label - 1;
  while (next < image.labels && image.class_of(targets, 2 * next + 1) != c) ++next;
  while (before >= 0 && image.class_of(targets, 2 * before + 1) != c) --before;
  chains[place] = (next < image.labels ? next : -1) - (before >= 0 ? LATER : 0);
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    ctc_loss_backward_block_steps(const TX* x, const int* targets, const int* input_lengths, const int* target_lengths,
                                  const TDLOSS* dloss, const float* prefixes, TDX* dx, CtcStep* steps, float* workspace,
                                  float* logs, int* chains, float alpha, float beta, UserArguments user, long long n) {
  find_steps(x, steps, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ctc_loss_backward_block(const TX* x, const int* targets, const int* input_lengths, const int* target_lengths,
                            const TDLOSS* dloss, const float* prefixes, TDX* dx, CtcStep* steps, float* workspace,
                            float* logs, int* chains, float alpha, float beta, UserArguments user, long long n) {
  __shared__ float largest_of_warps[2 * StateRows::WARPS];
  const CtcImage image(static_cast<Index>(blockIdx.x), input_lengths, target_lengths);
  const StateRows rows(image, workspace, largest_of_warps);
  const int states = image.states();
  const long long first_line = static_cast<long long>(image.image) * static_cast<int>(STEPS);
  const auto load = [&](const ThreadStates& own, int step, StateValues& values) {
    own.load(x, image, steps, step, values);
#pragma unroll
    for (int i = 0; i < STATES; ++i) {
      const int state = own.state_of(i);
      if (state < states) values.prefixes[i] = prefixes[image.offset_in_prefixes(step, state)];
    }
  };
  StepValues values(image, targets, load);
  values.bring(image.steps - 1);
#pragma unroll 1
  for (int step = image.steps - 1; step >= 0; --step) {
    const float* const ahead = rows.row(step + 1);
    float* const now = rows.row(step);
    const bool is_last = step == image.steps - 1;
    const float base = is_last ? 0.0f : rows.base_of(step + 1);
    float* const own_logs = logs + (first_line + step) * all_states();
    float largest = -infinity();
    values.take(step, [&](const ThreadStates& own, const StateValues& read) {
#pragma unroll
      for (int i = 0; i < STATES; ++i) {
        const int state = own.state_of(i);
        if (state >= states) continue;
        float suffix = state + 2 >= states ? 0.0f : -infinity();
        if (!is_last) {
          suffix = log_sum_2(ahead[state], at_state(ahead, state + 1, states),
                             own.is_skipped_from(i) ? ahead[state + 2] : -infinity()) -
                   base;
        }
        own_logs[state] = own.is_none(i) ? nan() : with_probability(suffix, in_base_2(read.prefixes[i]));
        now[state] = with_probability(suffix, own.probability(read, i));
        largest = fmaxf(largest, now[state]);
      }
    });
    rows.leave_largest(step, largest);
    values.bring(step - 1);
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    ctc_loss_backward_block_classes(const TX* x, const int* targets, const int* input_lengths,
                                    const int* target_lengths, const TDLOSS* dloss, const float* prefixes, TDX* dx,
                                    CtcStep* steps, float* workspace, float* logs, int* chains, float alpha, float beta,
                                    UserArguments user, long long n) {
  __shared__ float scratch[ROW_THREADS / 32], of_classes[CLASSES_AT_ONCE];
  const int thread = static_cast<int>(threadIdx.x);
  Index number = static_cast<Index>(blockIdx.x);
  const int step = static_cast<int>(take_coordinate(number, STEPS));
  const CtcImage image(number, input_lengths, target_lengths);
  const long long line = static_cast<long long>(number) * static_cast<int>(STEPS) + step;
  const float* const own = logs + line * all_states();
  const int* const own_chains = chains + static_cast<long long>(number) * static_cast<int>(LABELS);
  const bool counts = step < image.steps;
  float largest = -infinity(), sum = 0.0f, blanks = 0.0f;
  for (int state = thread; counts && state < image.states(); state += ROW_THREADS) {
    largest = max_nan(largest, own[state]);
  }
  largest = block_reduce<ROW_THREADS>(largest, scratch, [](float a, float b) { return max_nan(a, b); });
  const bool has_path = counts && largest != -infinity();
  for (int state = thread; has_path && state < image.states(); state += ROW_THREADS) {
    const float part = power_of_2(own[state] - largest);
    sum += part;
    if (state % 2 == 0) blanks += part;
  }
  sum = block_reduce<ROW_THREADS>(sum, scratch, Sum());
  blanks = block_reduce<ROW_THREADS>(blanks, scratch, Sum());

  const CtcStep row = counts ? step_of(steps, image, step) : CtcStep{0.0f, 0.0f};
  const float factor = WITH_DLOSS ? to_float(dloss[number * Index(DLOSS_STRIDE_N)]) : 1.0f;
  const OutputArguments output = {alpha, beta, user};
  const int all_classes = CLASSES;
#pragma unroll 1
  for (int first = 0; first < all_classes; first += CLASSES_AT_ONCE) {
    const int end = min(first + CLASSES_AT_ONCE, all_classes);
    // A thread clears what itself has read.
    for (int c = first + thread; c < end; c += ROW_THREADS) of_classes[c - first] = c == BLANK ? blanks : 0.0f;
    __syncthreads();
    for (int label = thread; has_path && label < image.labels; label += ROW_THREADS) {
      const int c = image.class_of(targets, 2 * label + 1);
      if (own_chains[label] < -1 || c < first || c >= end || c == BLANK) continue;
      float part = 0.0f;
      for (int same = label; same >= 0;) {
        part += power_of_2(own[2 * same + 1] - largest);
        const int next = own_chains[same];
        same = next < -1 ? next + LATER : next;
      }
      of_classes[c - first] = part;
    }
    __syncthreads();
    for (int c = first + thread; c < end; c += ROW_THREADS) {
      float value = 0.0f;
      if (has_path) {
        const float p = expf(row.log_probability(to_float(x[image.offset_in_x(step, c)])));
        value = factor * (p - of_classes[c - first] / sum);
      } else if (counts && !ZEROES_INFINITE) {
        value = nan();
      }
      const Index offset = number * Index(DX_STRIDE_N) + step * Index(DX_STRIDE_T) + c * Index(DX_STRIDE_C);
      store_result(dx, offset, value, 0, output);
    }
  }
}
