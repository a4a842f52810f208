// Gradients of recurrent cells: what a step makes of the gradients of the state behind it.
// generator/operations/recurrent.h has the formulas.
#include "lib/recurrent.cuh"

// A gate behind the logistic function or tanh: its derivative.
__device__ __forceinline__ float logistic_slope_from(float gate) {
  return gate * (1.0f - gate);
}
__device__ __forceinline__ float tanh_slope_from(float gate) {
  return (1.0f - gate) * (1.0f + gate);
}

// Gradients of a unit's gates, and what goes on to the state before: c, and h besides the products.
struct UnitGradient {
  float rows[GATES];
  float c, h;
};

// `dh`, `dc`: gradients of the state behind the step. `before`: the state before it, an LSTM's c or a GRU's h. The row
// of a reset gate that stands in front of the product is left out: reset_row().
__device__ __forceinline__ UnitGradient unit_gradient(float dh, float dc, const float (&saved)[SAVED_PARTS],
                                                      float before, const Peepholes& peepholes) {
  UnitGradient result = {};
  if constexpr (CELL == CELL_LSTM) {
    const float input = saved[INPUT_GATE], forget = saved[FORGET_GATE], cell = saved[CELL_GATE],
                output = saved[OUTPUT_GATE], squashed = tanhf(saved[SAVED_C]);
    const float of_output = dh * squashed * logistic_slope_from(output);
    float of_c = dc + dh * output * tanh_slope_from(squashed);
    if constexpr (WITH_PEEPHOLES) of_c += peepholes.output * of_output;
    const float of_input = of_c * cell * logistic_slope_from(input);
    const float of_forget = of_c * before * logistic_slope_from(forget);
    result.rows[INPUT_GATE] = of_input, result.rows[FORGET_GATE] = of_forget, result.rows[OUTPUT_GATE] = of_output;
    result.rows[CELL_GATE] = of_c * input * tanh_slope_from(cell);
    result.c = of_c * forget;
    if constexpr (WITH_PEEPHOLES) result.c += peepholes.input * of_input + peepholes.forget * of_forget;
  } else if constexpr (CELL == CELL_GRU) {
    const float reset = saved[RESET_GATE], update = saved[UPDATE_GATE], fresh = saved[NEW_GATE];
    const float of_new = dh * (1.0f - update) * tanh_slope_from(fresh);
    result.rows[UPDATE_GATE] = dh * (before - fresh) * logistic_slope_from(update);
    result.rows[NEW_GATE] = of_new;
    if constexpr (!RESETS_BEFORE) {
      result.rows[RESET_GATE] = of_new * saved[SAVED_PRODUCT] * logistic_slope_from(reset);
    }
    result.h = dh * update;
  } else if constexpr (CELL == CELL_TANH) {
    result.rows[0] = dh * tanh_slope_from(saved[0]);
  } else {
    result.rows[0] = activation_gradient<ACTIVATION_RELU>(activation_slope_from_y<ACTIVATION_RELU>(saved[0], 0, 0), dh);
  }
  return result;
}

// The row of a reset gate that stands in front of the product. `passed`: the gradient of what it let through.
__device__ __forceinline__ float reset_row(float passed, float before, float reset) {
  return passed * before * logistic_slope_from(reset);
}

// The gradient of a gate's product r h + r_bias, from that of the gate.
__device__ __forceinline__ float product_gradient(float row, int gate, const float (&saved)[SAVED_PARTS]) {
  return CELL == CELL_GRU && !RESETS_BEFORE && gate == NEW_GATE ? row * saved[RESET_GATE] : row;
}

// Offsets of elements.
__device__ __forceinline__ Index offset_in_dy(Index image, int step, int direction, int unit) {
  return image * Index(DY_STRIDE_N) + step * Index(DY_STRIDE_T) + direction * Index(DY_STRIDE_D) +
         unit * Index(DY_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_dgates(Index image, int step, int direction, int row) {
  return image * Index(DGATES_STRIDE_N) + step * Index(DGATES_STRIDE_T) + direction * Index(DGATES_STRIDE_D) +
         row * Index(DGATES_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_dproducts(Index image, int step, int direction, int row) {
  return image * Index(DPRODUCTS_STRIDE_N) + step * Index(DPRODUCTS_STRIDE_T) + direction * Index(DPRODUCTS_STRIDE_D) +
         row * Index(DPRODUCTS_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_dhn(Index image, int direction, int unit) {
  return image * Index(DHN_STRIDE_N) + direction * Index(DHN_STRIDE_D) + unit * Index(DHN_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_dcn(Index image, int direction, int unit) {
  return image * Index(DCN_STRIDE_N) + direction * Index(DCN_STRIDE_D) + unit * Index(DCN_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_dh0(Index image, int direction, int unit) {
  return image * Index(DH0_STRIDE_N) + direction * Index(DH0_STRIDE_D) + unit * Index(DH0_STRIDE_U);
}
__device__ __forceinline__ Index offset_in_dc0(Index image, int direction, int unit) {
  return image * Index(DC0_STRIDE_N) + direction * Index(DC0_STRIDE_D) + unit * Index(DC0_STRIDE_U);
}

// Saved parts of a unit at a place in time.
__device__ __forceinline__ void load_saved(const TSAVED* saved, Index image, int time, int direction, int unit,
                                           float (&parts)[SAVED_PARTS]) {
#pragma unroll
  for (int part = 0; part < SAVED_PARTS; ++part) {
    parts[part] = to_float(saved[offset_in_saved(image, time, direction, part * HIDDEN + unit)]);
  }
}

// The state before step number `number`: an LSTM's c, a GRU's h, of which `saved` and `y` have that behind the step
// before; nothing for other cells.
__device__ __forceinline__ float state_before(const TSAVED* saved, const TY* y, const TH0* h0, const TC0* c0,
                                              Index image, int number, int length, int direction, int unit) {
  const int time = time_of(number - 1, length, direction);
  if constexpr (CELL == CELL_LSTM) {
    if (number == 0) return state_at<WITH_C0>(c0, offset_in_c0(image, direction, unit));
    return to_float(saved[offset_in_saved(image, time, direction, SAVED_C * HIDDEN + unit)]);
  } else if constexpr (CELL == CELL_GRU) {
    if (number == 0) return state_at<WITH_H0>(h0, offset_in_h0(image, direction, unit));
    return to_float(y[image * Index(Y_STRIDE_N) + time * Index(Y_STRIDE_T) + direction * Index(Y_STRIDE_D) +
                      unit * Index(Y_STRIDE_U)]);
  }
  return 0.0f;
}
