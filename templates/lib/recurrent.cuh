// Recurrent cells: what a step makes of the sums of its gates. generator/operations/recurrent.h has the formulas.
//
// From the prelude: CELL, RESETS_BEFORE (the reset gate of a GRU stands in front of the product), ORDER_IOFC (the order
// of the gates in memory, that of ONNX), HIDDEN, STEPS, DIRECTIONS, IS_REVERSE (the first direction is), and for each
// operand its type, strides, and where there may be none WITH_...
#include "lib/activation.cuh"
#include "lib/index.cuh"

enum : int {  // as RecurrentCell
  CELL_LSTM,
  CELL_GRU,
  CELL_TANH,
  CELL_RELU,
};

constexpr int GATES = CELL == CELL_LSTM ? 4 : CELL == CELL_GRU ? 3 : 1;

// Places of the gates in memory.
constexpr int INPUT_GATE = 0, FORGET_GATE = ORDER_IOFC ? 2 : 1, CELL_GATE = ORDER_IOFC ? 3 : 2,
              OUTPUT_GATE = ORDER_IOFC ? 1 : 3;
constexpr int RESET_GATE = ORDER_IOFC ? 1 : 0, UPDATE_GATE = ORDER_IOFC ? 0 : 1, NEW_GATE = 2;

struct RecurrentState {
  float h, c;
};

// Weights of the cell state in the gates.
struct Peepholes {
  float input, output, forget;
};

// The state behind a step. `gates`: what the inputs give; `products`: what the state before gives, with its bias, for
// NEW_GATE behind the reset gate where that stands in front of the product.
__device__ __forceinline__ RecurrentState next_state(const float* gates, const float* products,
                                                     const Peepholes& peepholes, RecurrentState before) {
  if constexpr (CELL == CELL_LSTM) {
    const float input =
        logistic(gates[INPUT_GATE] + products[INPUT_GATE] + (WITH_PEEPHOLES ? peepholes.input * before.c : 0.0f));
    const float forget =
        logistic(gates[FORGET_GATE] + products[FORGET_GATE] + (WITH_PEEPHOLES ? peepholes.forget * before.c : 0.0f));
    const float c = forget * before.c + input * tanhf(gates[CELL_GATE] + products[CELL_GATE]);
    const float output =
        logistic(gates[OUTPUT_GATE] + products[OUTPUT_GATE] + (WITH_PEEPHOLES ? peepholes.output * c : 0.0f));
    return {output * tanhf(c), c};
  } else if constexpr (CELL == CELL_GRU) {
    const float update = logistic(gates[UPDATE_GATE] + products[UPDATE_GATE]);
    const float reset = RESETS_BEFORE ? 1.0f : logistic(gates[RESET_GATE] + products[RESET_GATE]);
    const float fresh = tanhf(gates[NEW_GATE] + reset * products[NEW_GATE]);
    return {(1.0f - update) * fresh + update * before.h, 0.0f};
  } else if constexpr (CELL == CELL_TANH) {
    return {tanhf(gates[0] + products[0]), 0.0f};
  } else {
    return {activated<ACTIVATION_RELU>(gates[0] + products[0], 0, 0, 0, 0), 0.0f};
  }
}

// Steps of an image that count.
__device__ __forceinline__ int length_of(const int* lengths, Index image) {
  const int steps = STEPS;
  if constexpr (!WITH_LENGTHS) return steps;
  return min(max(lengths[image * Index(LENGTHS_STRIDE_N)], 0), steps);
}

// Whether direction number `direction` goes from the last step to the first.
__device__ __forceinline__ bool goes_back(int direction) {
  return IS_REVERSE || direction == 1;
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
__device__ __forceinline__ Index offset_in_h0(Index image, int direction, int unit) {
  return image * Index(H0_STRIDE_N) + direction * Index(H0_STRIDE_D) + unit * Index(H0_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_c0(Index image, int direction, int unit) {
  return image * Index(C0_STRIDE_N) + direction * Index(C0_STRIDE_D) + unit * Index(C0_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_hn(Index image, int direction, int unit) {
  return image * Index(HN_STRIDE_N) + direction * Index(HN_STRIDE_D) + unit * Index(HN_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_cn(Index image, int direction, int unit) {
  return image * Index(CN_STRIDE_N) + direction * Index(CN_STRIDE_D) + unit * Index(CN_STRIDE_U);
}

// The element of a state at an offset, 0 where there is none.
template <bool THERE, class T>
__device__ __forceinline__ float state_at(const T* state, Index offset) {
  if constexpr (!THERE) return 0.0f;
  return to_float(state[offset]);
}

__device__ __forceinline__ float r_bias_at(const TR_BIAS* r_bias, int direction, int row) {
  if constexpr (!WITH_R_BIAS) return 0.0f;
  return to_float(r_bias[direction * Index(R_BIAS_STRIDE_D) + row * Index(R_BIAS_STRIDE_G)]);
}

__device__ __forceinline__ Peepholes peepholes_at(const TPEEPHOLES* peepholes, int direction, int unit) {
  if constexpr (!WITH_PEEPHOLES) return {};
  const TPEEPHOLES* const first = peepholes + direction * Index(PEEPHOLES_STRIDE_D);
  const auto at = [&](int which) { return to_float(first[(which * HIDDEN + unit) * Index(PEEPHOLES_STRIDE_U)]); };
  return {at(0), at(1), at(2)};
}
