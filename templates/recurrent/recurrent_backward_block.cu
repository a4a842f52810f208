// Gradient of the steps of a recurrent layer by teams of blocks (lib/recurrent_team.cuh), from the last step to the
// first: a lane computes the gradients of a unit's gates, all blocks see those of all units, and each adds up what they
// bring to its own units of the state before. Parameters: team.cpp.
#include "lib/recurrent_gradient.cuh"
#include "lib/recurrent_team.cuh"
#include "lib/store.cuh"

constexpr bool RESETS_IN_FRONT = CELL == CELL_GRU && RESETS_BEFORE;

// Gradients of products for each gate, of two steps in turns: one thread may be a step ahead of another.
struct Memory {
  States products[2][GATES];
  // Each element is one thread's: gradients of the state, and what goes on beside the products.
  States h, c, past;
};
static_assert(sizeof(Memory) == MEMORY_BYTES, "the launch asks for as much");

using Exchange = Team<2 * GATES>;

// The operands that the steps read and write.
struct Operands {
  const TDY* dy;
  const TSAVED* saved;
  const TY* y;
  const TPEEPHOLES* peepholes;
  const TH0* h0;
  const TC0* c0;
  const int* lengths;
  TDGATES* dgates;
  TDPRODUCTS* dproducts;
};

// Stores the gradients of a gate of a unit, and of its product.
__device__ __forceinline__ void store_gradients(const Operands& operands, const Place& place, const Pair& pair,
                                                int time, int gate, float row, float product,
                                                const OutputArguments& output) {
  const int number = gate * HIDDEN + pair.unit;
  store_result(operands.dgates, offset_in_dgates(pair.image, time, place.direction, number), row, 0, output);
  if constexpr (WITH_DPRODUCTS) {
    operands.dproducts[offset_in_dproducts(pair.image, time, place.direction, number)] =
        from_float<TDPRODUCTS>(product);
  }
}

// Gates of a unit: all but a reset gate in front of the product.
__device__ __forceinline__ void unit_step(const Operands& operands, const Place& place, const Pair& pair, int step,
                                          Memory& memory, Exchange& team, const OutputArguments& output) {
  const int length = length_of(operands.lengths, pair.image), time = time_of(step, length, place.direction);
  const bool counts = step < length;
  float& c = memory.c[pair.slot][pair.unit];
  float parts[SAVED_PARTS];
  load_saved(operands.saved, pair.image, time, place.direction, pair.unit, parts);
  const float before = state_before(operands.saved, operands.y, operands.h0, operands.c0, pair.image, step, length,
                                    place.direction, pair.unit);
  const float dh = memory.h[pair.slot][pair.unit] +
                   to_float(operands.dy[offset_in_dy(pair.image, time, place.direction, pair.unit)]);
  const UnitGradient gradient =
      unit_gradient(dh, c, parts, before, peepholes_at(operands.peepholes, place.direction, pair.unit));
  c = counts ? gradient.c : c;
  memory.past[pair.slot][pair.unit] = gradient.h;
#pragma unroll
  for (int gate = 0; gate < GATES; ++gate) {
    if (RESETS_IN_FRONT && gate == RESET_GATE) continue;
    const float row = counts ? gradient.rows[gate] : 0.0f;
    const float product = counts ? product_gradient(gradient.rows[gate], gate, parts) : 0.0f;
    team.give(step % 2 * GATES + gate, pair, product, memory.products[step % 2][gate]);
    store_gradients(operands, place, pair, time, gate, row, product, output);
  }
}

// The reset gate of a unit in front of the product, from the gradient of what it let through.
__device__ __forceinline__ void reset_step(const Operands& operands, const Place& place, const Pair& pair, int step,
                                           float passed, Memory& memory, Exchange& team,
                                           const OutputArguments& output) {
  const int length = length_of(operands.lengths, pair.image), time = time_of(step, length, place.direction);
  const bool counts = step < length;
  const float reset =
      to_float(operands.saved[offset_in_saved(pair.image, time, place.direction, RESET_GATE * HIDDEN + pair.unit)]);
  const float before = state_before(operands.saved, operands.y, operands.h0, operands.c0, pair.image, step, length,
                                    place.direction, pair.unit);
  const float row = counts ? reset_row(passed, before, reset) : 0.0f;
  memory.past[pair.slot][pair.unit] += passed * reset;
  team.give(step % 2 * GATES + RESET_GATE, pair, row, memory.products[step % 2][RESET_GATE]);
  store_gradients(operands, place, pair, time, RESET_GATE, row, row, output);
}

// Calls `use` with every pair of this lane that is there, and what gradients of COUNT gates from FIRST on bring to it.
template <int FIRST, int COUNT, class Use>
__device__ __forceinline__ void through_weights(const Weights& weights, const Place& place, const Images& images,
                                                const States* products, Use use) {
  for (int round = 0; round < ROUNDS; ++round) {
    Sums sums = {};
    add_products<FIRST, COUNT, false>(weights, place, round, products, sums);
#pragma unroll
    for (int i = 0; i < UNITS * IMAGES; ++i) {
#pragma unroll
      for (int gate = FIRST + 1; gate < FIRST + COUNT; ++gate) {
        sums[i / IMAGES][FIRST][i % IMAGES] += sums[i / IMAGES][gate][i % IMAGES];
      }
    }
    add_lanes<FIRST, 1>(sums);
#pragma unroll
    for (int number = 0; number < PAIRS_OF_LANE; ++number) {
      const Pair pair = pair_of(place, round, number, images);
      const float sum = sum_of_pair(sums, FIRST, number, place.lane);
      if (pair.is_there) use(pair, sum);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    recurrent_backward_block(const TDY* dy, const TR* r, const TSAVED* saved, const TY* y, const TPEEPHOLES* peepholes,
                             const TH0* h0, const TC0* c0, const int* lengths, const TDHN* dhn, const TDCN* dcn,
                             TDGATES* dgates, TDPRODUCTS* dproducts, TDH0* dh0, TDC0* dc0, float* workspace,
                             float alpha, float beta, UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const Place place;
  const Operands operands = {dy, saved, y, peepholes, h0, c0, lengths, dgates, dproducts};
  const OutputArguments output = {alpha, beta, user};
  const Index all = DYNAMIC_N ? static_cast<Index>(n) : Index(N);
  const Weights weights(r, place);
  for (Index turn = blockIdx.x; turn * IMAGES < all; turn += gridDim.x) {
    const Images images = {turn * IMAGES, all};
    Exchange team(workspace, turn * DIRECTIONS + place.direction);
    for (int i = static_cast<int>(threadIdx.x); i < MEMORY_BYTES / 4; i += THREADS) {
      reinterpret_cast<float*>(&memory)[i] = 0.0f;
    }
    __syncthreads();
    for_each_pair(place, images, [&](const Pair& pair) {
      memory.h[pair.slot][pair.unit] = state_at<WITH_DHN>(dhn, offset_in_dhn(pair.image, place.direction, pair.unit));
      memory.c[pair.slot][pair.unit] = state_at<WITH_DCN>(dcn, offset_in_dcn(pair.image, place.direction, pair.unit));
    });

    for (int step = STEPS - 1; step >= 0; --step) {
      States* const products = memory.products[step % 2];
      for_each_pair(place, images,
                    [&](const Pair& pair) { unit_step(operands, place, pair, step, memory, team, output); });
      if constexpr (RESETS_IN_FRONT) {
        team.take(step % 2 * GATES + NEW_GATE, 1, images, products + NEW_GATE);
        through_weights<NEW_GATE, 1>(weights, place, images, products, [&](const Pair& pair, float sum) {
          reset_step(operands, place, pair, step, sum, memory, team, output);
        });
        team.take(step % 2 * GATES, NEW_GATE, images, products);
      } else {
        team.take(step % 2 * GATES, GATES, images, products);
      }
      constexpr int LAST = RESETS_IN_FRONT ? NEW_GATE : GATES;
      through_weights<0, LAST>(weights, place, images, products, [&](const Pair& pair, float sum) {
        float& h = memory.h[pair.slot][pair.unit];
        h = step < length_of(lengths, pair.image) ? memory.past[pair.slot][pair.unit] + sum : h;
      });
    }

    for_each_pair(place, images, [&](const Pair& pair) {
      const Index image = pair.image;
      if constexpr (WITH_DH0) {
        dh0[offset_in_dh0(image, place.direction, pair.unit)] = from_float<TDH0>(memory.h[pair.slot][pair.unit]);
      }
      if constexpr (WITH_DC0) {
        dc0[offset_in_dc0(image, place.direction, pair.unit)] = from_float<TDC0>(memory.c[pair.slot][pair.unit]);
      }
    });
    __syncthreads();  // before the next images
  }
}
