// Gradient of the steps of a recurrent layer, the plain way: one block an image and direction, one thread a unit, any
// strides. The trusted kernel of recurrent_backward: others are checked against it, so it is written to be obviously
// right. Parameters: recurrent_backward_simple.cpp.
#include "lib/recurrent_gradient.cuh"
#include "lib/store.cuh"

// Gradient of a unit of the state, from those of the rows from `first` to `last` (not with it) of r.
__device__ float through_weights(const TR* r, const float* gradients, int direction, int first, int last, int unit) {
  const TR* const column = r + direction * Index(R_STRIDE_D) + unit * Index(R_STRIDE_U);
  float sum = 0.0f;
  for (int row = first; row < last; ++row) sum += to_float(column[row * Index(R_STRIDE_G)]) * gradients[row];
  return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    recurrent_backward_simple(const TDY* dy, const TR* r, const TSAVED* saved, const TY* y, const TPEEPHOLES* peepholes,
                              const TH0* h0, const TC0* c0, const int* lengths, const TDHN* dhn, const TDCN* dcn,
                              TDGATES* dgates, TDPRODUCTS* dproducts, TDH0* dh0, TDC0* dc0, float* gradients,
                              float alpha, float beta, UserArguments user, long long n) {
  constexpr bool RESETS_IN_FRONT = CELL == CELL_GRU && RESETS_BEFORE;
  const Index image = static_cast<Index>(blockIdx.x) / DIRECTIONS;
  const int direction = static_cast<int>(blockIdx.x % DIRECTIONS);
  const int first = static_cast<int>(threadIdx.x);
  // Gradients of the state behind a step, what goes on beside the products, and gradients of gates and of products.
  float* const h = gradients + static_cast<long long>(blockIdx.x) * (3 + 2 * GATES) * HIDDEN;
  float *const c = h + HIDDEN, *const past = h + 2 * HIDDEN, *const rows = h + 3 * HIDDEN,
               *const products = rows + GATES * HIDDEN;
  for (int unit = first; unit < HIDDEN; unit += THREADS) {
    h[unit] = state_at<WITH_DHN>(dhn, offset_in_dhn(image, direction, unit));
    c[unit] = state_at<WITH_DCN>(dcn, offset_in_dcn(image, direction, unit));
  }

  const int length = length_of(lengths, image);
  for (int number = STEPS - 1; number >= 0; --number) {
    const bool counts = number < length;
    const int time = time_of(number, length, direction);
    const auto before_of = [&](int unit) {
      return state_before(saved, y, h0, c0, image, number, length, direction, unit);
    };
    for (int unit = first; unit < HIDDEN; unit += THREADS) {
      UnitGradient gradient = {};
      float parts[SAVED_PARTS] = {};
      if (counts) {
        load_saved(saved, image, time, direction, unit, parts);
        const float dh = h[unit] + to_float(dy[offset_in_dy(image, time, direction, unit)]);
        gradient = unit_gradient(dh, c[unit], parts, before_of(unit), peepholes_at(peepholes, direction, unit));
        c[unit] = gradient.c;
        past[unit] = gradient.h;
      }
      for (int gate = 0; gate < GATES; ++gate) {
        rows[gate * HIDDEN + unit] = gradient.rows[gate];
        products[gate * HIDDEN + unit] = product_gradient(gradient.rows[gate], gate, parts);
      }
    }
    __syncthreads();
    if (RESETS_IN_FRONT && counts) {
      for (int unit = first; unit < HIDDEN; unit += THREADS) {
        const float reset = to_float(saved[offset_in_saved(image, time, direction, RESET_GATE * HIDDEN + unit)]);
        const float passed = through_weights(r, rows, direction, NEW_GATE * HIDDEN, (NEW_GATE + 1) * HIDDEN, unit);
        rows[RESET_GATE * HIDDEN + unit] = reset_row(passed, before_of(unit), reset);
        products[RESET_GATE * HIDDEN + unit] = rows[RESET_GATE * HIDDEN + unit];
        past[unit] += passed * reset;
      }
      __syncthreads();
    }
    for (int unit = first; unit < HIDDEN; unit += THREADS) {
      constexpr int LAST = RESETS_IN_FRONT ? NEW_GATE : GATES;
      if (counts) h[unit] = past[unit] + through_weights(r, products, direction, 0, LAST * HIDDEN, unit);
      for (int gate = 0; gate < GATES; ++gate) {
        const int row = gate * HIDDEN + unit;
        const long long number_in_dgates =
            ((image * static_cast<long long>(STEPS) + time) * DIRECTIONS + direction) * (GATES * HIDDEN) + row;
        store_element(dgates + offset_in_dgates(image, time, direction, row), number_in_dgates, rows[row], 0,
                      {alpha, beta, user});
        if constexpr (WITH_DPRODUCTS) {
          dproducts[offset_in_dproducts(image, time, direction, row)] = from_float<TDPRODUCTS>(products[row]);
        }
      }
    }
    __syncthreads();
  }

  for (int unit = first; unit < HIDDEN; unit += THREADS) {
    if constexpr (WITH_DH0) dh0[offset_in_dh0(image, direction, unit)] = from_float<TDH0>(h[unit]);
    if constexpr (WITH_DC0) dc0[offset_in_dc0(image, direction, unit)] = from_float<TDC0>(c[unit]);
  }
}
