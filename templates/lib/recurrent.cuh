// Recurrent cells: what a layer's steps (lib/recurrent_cell.cuh) and their gradients (lib/recurrent_gradient.cuh)
// share. generator/operations/recurrent.h has the formulas.
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

// Parts that a step saves for the gradient: the gates in their order, and another one.
constexpr int SAVED_PARTS = CELL == CELL_LSTM ? 5 : CELL == CELL_GRU ? 4 : 1;
constexpr int SAVED_C = 4, SAVED_PRODUCT = 3;

// Places of the gates in memory.
constexpr int INPUT_GATE = 0, FORGET_GATE = ORDER_IOFC ? 2 : 1, CELL_GATE = ORDER_IOFC ? 3 : 2,
              OUTPUT_GATE = ORDER_IOFC ? 1 : 3;
constexpr int RESET_GATE = ORDER_IOFC ? 1 : 0, UPDATE_GATE = ORDER_IOFC ? 0 : 1, NEW_GATE = 2;

// Weights of the cell state in the gates.
struct Peepholes {
  float input, output, forget;
};

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

// Place in time of step number `number` of an image that has `length`.
__device__ __forceinline__ int time_of(int number, int length, int direction) {
  return number < length && goes_back(direction) ? length - 1 - number : number;
}

__device__ __forceinline__ Index offset_in_h0(Index image, int direction, int unit) {
  return image * Index(H0_STRIDE_N) + direction * Index(H0_STRIDE_D) + unit * Index(H0_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_c0(Index image, int direction, int unit) {
  return image * Index(C0_STRIDE_N) + direction * Index(C0_STRIDE_D) + unit * Index(C0_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_saved(Index image, int step, int direction, int element) {
  return image * Index(SAVED_STRIDE_N) + step * Index(SAVED_STRIDE_T) + direction * Index(SAVED_STRIDE_D) +
         element * Index(SAVED_STRIDE_U);
}

// The element of a state at an offset, 0 where there is none.
template <bool THERE, class T>
__device__ __forceinline__ float state_at(const T* state, Index offset) {
  if constexpr (!THERE) return 0.0f;
  return to_float(state[offset]);
}

__device__ __forceinline__ Peepholes peepholes_at(const TPEEPHOLES* peepholes, int direction, int unit) {
  if constexpr (!WITH_PEEPHOLES) return {};
  const TPEEPHOLES* const first = peepholes + direction * Index(PEEPHOLES_STRIDE_D);
  const auto at = [&](int which) { return to_float(first[(which * HIDDEN + unit) * Index(PEEPHOLES_STRIDE_U)]); };
  return {at(0), at(1), at(2)};
}
