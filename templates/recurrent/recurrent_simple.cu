// The steps of a recurrent layer, the plain way: one block an image and direction, one thread a unit, any strides. The
// trusted kernel of recurrent_forward: others are checked against it, so it is written to be obviously right.
// Parameters: recurrent_simple.cpp.
#include "lib/recurrent_cell.cuh"
#include "lib/store.cuh"

// Product of a row of r with a state, and the bias of the row.
__device__ float product_of_row(const TR* r, const TR_BIAS* r_bias, const float* h, int direction, int row) {
  const TR* const weights = r + direction * Index(R_STRIDE_D) + row * Index(R_STRIDE_G);
  float sum = 0.0f;
  for (int k = 0; k < HIDDEN; ++k) sum += to_float(weights[k * Index(R_STRIDE_U)]) * h[k];
  return sum + r_bias_at(r_bias, direction, row);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    recurrent_simple(const TGATES* gates, const TR* r, const TR_BIAS* r_bias, const TPEEPHOLES* peepholes,
                     const TH0* h0, const TC0* c0, const int* lengths, TY* y, THN* hn, TCN* cn, TSAVED* saved,
                     float* states, float alpha, float beta, UserArguments user, long long n) {
  const Index image = static_cast<Index>(blockIdx.x) / DIRECTIONS;
  const int direction = static_cast<int>(blockIdx.x % DIRECTIONS);
  const int first = static_cast<int>(threadIdx.x);
  // The state before a step and behind it; the reset gates, and what they let through.
  float* h = states + static_cast<long long>(blockIdx.x) * 5 * HIDDEN;
  float* next = h + HIDDEN;
  float* const c = h + 2 * HIDDEN;
  float* const resets = h + 3 * HIDDEN;
  float* const passed = h + 4 * HIDDEN;
  for (int unit = first; unit < HIDDEN; unit += THREADS) {
    h[unit] = state_at<WITH_H0>(h0, offset_in_h0(image, direction, unit));
    c[unit] = state_at<WITH_C0>(c0, offset_in_c0(image, direction, unit));
  }
  __syncthreads();

  const int length = length_of(lengths, image);
  for (int number = 0; number < STEPS; ++number) {
    const bool counts = number < length;
    const int step = time_of(number, length, direction);
    const auto given = [&](int row) { return to_float(gates[offset_in_gates(image, step, direction, row)]); };
    if (CELL == CELL_GRU && RESETS_BEFORE && counts) {
      for (int unit = first; unit < HIDDEN; unit += THREADS) {
        const int row = RESET_GATE * HIDDEN + unit;
        resets[unit] = logistic(given(row) + product_of_row(r, r_bias, h, direction, row));
        passed[unit] = resets[unit] * h[unit];
      }
      __syncthreads();
    }
    for (int unit = first; unit < HIDDEN; unit += THREADS) {
      float result = 0.0f, parts[SAVED_PARTS] = {};
      if (counts) {
        float inputs[GATES], products[GATES];
        for (int gate = 0; gate < GATES; ++gate) {
          const int row = gate * HIDDEN + unit;
          const bool is_behind_reset = CELL == CELL_GRU && RESETS_BEFORE && gate == NEW_GATE;
          inputs[gate] = given(row);
          products[gate] = product_of_row(r, r_bias, is_behind_reset ? passed : h, direction, row);
        }
        const RecurrentState behind = next_state(inputs, products, peepholes_at(peepholes, direction, unit),
                                                 {h[unit], c[unit]}, RESETS_BEFORE ? resets[unit] : 0.0f, parts);
        result = behind.h;
        next[unit] = behind.h;
        c[unit] = behind.c;
      }
      const long long number_in_y = ((image * static_cast<long long>(STEPS) + step) * DIRECTIONS + direction) * HIDDEN;
      store_element(y + offset_in_y(image, step, direction, unit), number_in_y + unit, result, 0, {alpha, beta, user});
      save_parts(saved, image, step, direction, unit, parts, counts);
    }
    __syncthreads();
    if (counts) {
      float* const before = h;
      h = next;
      next = before;
    }
  }

  for (int unit = first; unit < HIDDEN; unit += THREADS) {
    if constexpr (WITH_HN) hn[offset_in_hn(image, direction, unit)] = from_float<THN>(h[unit]);
    if constexpr (WITH_CN) cn[offset_in_cn(image, direction, unit)] = from_float<TCN>(c[unit]);
  }
}
