// Recurrent cells: what a step makes of the sums of its gates.
#include "lib/recurrent.cuh"

struct RecurrentState {
  float h, c;
};

// The state behind a step. `gates`: what the inputs give; `products`: what the state before gives, with its bias, for
// NEW_GATE behind the reset gate where that stands in front of the product, which is given as `reset` then. `saved`:
// its parts for the gradient.
__device__ __forceinline__ RecurrentState next_state(const float* gates, const float* products,
                                                     const Peepholes& peepholes, RecurrentState before, float reset,
                                                     float (&saved)[SAVED_PARTS]) {
  if constexpr (CELL == CELL_LSTM) {
    const float input =
        logistic(gates[INPUT_GATE] + products[INPUT_GATE] + (WITH_PEEPHOLES ? peepholes.input * before.c : 0.0f));
    const float forget =
        logistic(gates[FORGET_GATE] + products[FORGET_GATE] + (WITH_PEEPHOLES ? peepholes.forget * before.c : 0.0f));
    const float cell = tanhf(gates[CELL_GATE] + products[CELL_GATE]);
    const float c = forget * before.c + input * cell;
    const float output =
        logistic(gates[OUTPUT_GATE] + products[OUTPUT_GATE] + (WITH_PEEPHOLES ? peepholes.output * c : 0.0f));
    saved[INPUT_GATE] = input, saved[FORGET_GATE] = forget, saved[CELL_GATE] = cell, saved[OUTPUT_GATE] = output;
    saved[SAVED_C] = c;
    return {output * tanhf(c), c};
  } else if constexpr (CELL == CELL_GRU) {
    const float update = logistic(gates[UPDATE_GATE] + products[UPDATE_GATE]);
    if constexpr (!RESETS_BEFORE) reset = logistic(gates[RESET_GATE] + products[RESET_GATE]);
    const float fresh = tanhf(gates[NEW_GATE] + (RESETS_BEFORE ? 1.0f : reset) * products[NEW_GATE]);
    saved[RESET_GATE] = reset, saved[UPDATE_GATE] = update, saved[NEW_GATE] = fresh;
    saved[SAVED_PRODUCT] = products[NEW_GATE];
    return {(1.0f - update) * fresh + update * before.h, 0.0f};
  } else {
    constexpr int MODE = CELL == CELL_TANH ? ACTIVATION_TANH : ACTIVATION_RELU;
    saved[0] = activated<MODE>(gates[0] + products[0], 0, 0, 0, 0);
    return {saved[0], 0.0f};
  }
}

// Offsets of elements.
__device__ __forceinline__ Index offset_in_gates(Index image, int step, int direction, int row) {
  return image * Index(GATES_STRIDE_N) + step * Index(GATES_STRIDE_T) + direction * Index(GATES_STRIDE_D) +
         row * Index(GATES_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_y(Index image, int step, int direction, int unit) {
  return image * Index(Y_STRIDE_N) + step * Index(Y_STRIDE_T) + direction * Index(Y_STRIDE_D) +
         unit * Index(Y_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_hn(Index image, int direction, int unit) {
  return image * Index(HN_STRIDE_N) + direction * Index(HN_STRIDE_D) + unit * Index(HN_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_cn(Index image, int direction, int unit) {
  return image * Index(CN_STRIDE_N) + direction * Index(CN_STRIDE_D) + unit * Index(CN_STRIDE_U);
}

// Saves the parts of a step, 0 behind an image's length.
__device__ __forceinline__ void save_parts(TSAVED* saved, Index image, int step, int direction, int unit,
                                           const float (&parts)[SAVED_PARTS], bool counts) {
#pragma unroll
  for (int part = 0; WITH_SAVED && part < SAVED_PARTS; ++part) {
    saved[offset_in_saved(image, step, direction, part * HIDDEN + unit)] =
        from_float<TSAVED>(counts ? parts[part] : 0.0f);
  }
}

__device__ __forceinline__ float r_bias_at(const TR_BIAS* r_bias, int direction, int row) {
  if constexpr (!WITH_R_BIAS) return 0.0f;
  return to_float(r_bias[direction * Index(R_BIAS_STRIDE_D) + row * Index(R_BIAS_STRIDE_G)]);
}
