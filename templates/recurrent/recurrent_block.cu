// The steps of a recurrent layer by teams of blocks (lib/recurrent_team.cuh): the states of all units stay in the
// shared memory of each block, and the lane that computes a unit has the sums of its gates at hand. Parameters:
// team.cpp.
#include "lib/recurrent_cell.cuh"
#include "lib/recurrent_team.cuh"
#include "lib/store.cuh"

constexpr bool TWO_PRODUCTS = CELL == CELL_GRU && RESETS_BEFORE;
constexpr int PASSED = 2;  // number of that state in a team's memory; 0 and 1: before a step and behind it, in turns

struct Memory {
  States h[2];    // before a step and behind it
  States c;       // each element is one thread's
  States passed;  // what the reset gate of a GRU lets through
  States resets;  // these gates; each element is one thread's
};
static_assert(sizeof(Memory) == MEMORY_BYTES, "the launch asks for as much");

// The operands that the steps read and write.
struct Operands {
  const TGATES* gates;
  const TR_BIAS* r_bias;
  const TPEEPHOLES* peepholes;
  const int* lengths;
  TY* y;
  TSAVED* saved;
};

// Loads what the inputs give to COUNT gates of a pair, from FIRST on.
template <int FIRST, int COUNT>
__device__ __forceinline__ void load_inputs(const Operands& operands, const Place& place, const Pair& pair, int step,
                                            float (&inputs)[GATES]) {
  if (!pair.is_there) return;
  const int time = time_of(step, length_of(operands.lengths, pair.image), place.direction);
#pragma unroll
  for (int gate = FIRST; gate < FIRST + COUNT; ++gate) {
    const Index offset = offset_in_gates(pair.image, time, place.direction, gate * HIDDEN + pair.unit);
    inputs[gate] = to_float(load_readonly<1>(operands.gates + offset)[0]);
  }
}

__device__ __forceinline__ float bias_of(const Operands& operands, const Place& place, const Pair& pair, int gate) {
  return pair.is_there ? r_bias_at(operands.r_bias, place.direction, gate * HIDDEN + pair.unit) : 0.0f;
}

// Gives what the reset gates let through, where they stand in front of the product.
__device__ __forceinline__ void reset_states(const Operands& operands, const Weights& weights, const Place& place,
                                             const Images& images, int step, Memory& memory, Team<3>& team) {
  const States& before = memory.h[step % 2];
  for (int round = 0; round < ROUNDS; ++round) {
    Sums sums = {};
    add_products<RESET_GATE, 1, true>(weights, place, round, &before, sums);
    add_lanes<RESET_GATE, 1>(sums);
#pragma unroll
    for (int number = 0; number < PAIRS_OF_LANE; ++number) {
      const Pair pair = pair_of(place, round, number, images);
      const float product =
          sum_of_pair(sums, RESET_GATE, number, place.lane) + bias_of(operands, place, pair, RESET_GATE);
      float inputs[GATES] = {};
      load_inputs<RESET_GATE, 1>(operands, place, pair, step, inputs);
      const float reset = logistic(inputs[RESET_GATE] + product);
      if (!pair.is_there) continue;
      memory.resets[pair.slot][pair.unit] = reset;
      team.give(PASSED, pair, reset * before[pair.slot][pair.unit], memory.passed);
    }
  }
}

// One step of a round of units.
__device__ __forceinline__ void step_round(const Operands& operands, const Weights& weights, const Place& place,
                                           const Images& images, int step, int round, Memory& memory, Team<3>& team,
                                           const OutputArguments& output) {
  const States& before = memory.h[step % 2];
  States& behind = memory.h[(step + 1) % 2];
  float inputs[PAIRS_OF_LANE][GATES] = {};
#pragma unroll
  for (int number = 0; number < PAIRS_OF_LANE; ++number) {
    load_inputs<0, GATES>(operands, place, pair_of(place, round, number, images), step, inputs[number]);
  }
  Sums sums = {};
  if constexpr (TWO_PRODUCTS) {
    add_products<UPDATE_GATE, 1, true>(weights, place, round, &before, sums);
    add_lanes<UPDATE_GATE, 1>(sums);
    add_products<NEW_GATE, 1, true>(weights, place, round, &memory.passed, sums);
    add_lanes<NEW_GATE, 1>(sums);
  } else {
    add_products<0, GATES, true>(weights, place, round, &before, sums);
    add_lanes<0, GATES>(sums);
  }
#pragma unroll
  for (int number = 0; number < PAIRS_OF_LANE; ++number) {
    const Pair pair = pair_of(place, round, number, images);
    float products[GATES];
#pragma unroll
    for (int gate = 0; gate < GATES; ++gate) {
      products[gate] = sum_of_pair(sums, gate, number, place.lane) + bias_of(operands, place, pair, gate);
    }
    if (!pair.is_there) continue;
    const RecurrentState old = {before[pair.slot][pair.unit], memory.c[pair.slot][pair.unit]};
    const float reset = TWO_PRODUCTS ? memory.resets[pair.slot][pair.unit] : 0.0f;
    float parts[SAVED_PARTS] = {};
    const RecurrentState next = next_state(
        inputs[number], products, peepholes_at(operands.peepholes, place.direction, pair.unit), old, reset, parts);
    const int length = length_of(operands.lengths, pair.image);
    const bool counts = step < length;
    team.give((step + 1) % 2, pair, counts ? next.h : old.h, behind);
    memory.c[pair.slot][pair.unit] = counts ? next.c : old.c;
    const int time = time_of(step, length, place.direction);
    store_result(operands.y, offset_in_y(pair.image, time, place.direction, pair.unit), counts ? next.h : 0.0f, 0,
                 output);
    save_parts(operands.saved, pair.image, time, place.direction, pair.unit, parts, counts);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    recurrent_block(const TGATES* gates, const TR* r, const TR_BIAS* r_bias, const TPEEPHOLES* peepholes, const TH0* h0,
                    const TC0* c0, const int* lengths, TY* y, THN* hn, TCN* cn, TSAVED* saved, float* workspace,
                    float alpha, float beta, UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const Place place;
  const Operands operands = {gates, r_bias, peepholes, lengths, y, saved};
  const Index all = DYNAMIC_N ? static_cast<Index>(n) : Index(N);
  const Weights weights(r, place);
  for (Index turn = blockIdx.x; turn * IMAGES < all; turn += gridDim.x) {
    const Images images = {turn * IMAGES, all};
    Team<3> team(workspace, turn * DIRECTIONS + place.direction);
    for (int i = static_cast<int>(threadIdx.x); i < MEMORY_BYTES / 4; i += THREADS) {
      reinterpret_cast<float*>(&memory)[i] = 0.0f;
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < IMAGES * HIDDEN; i += THREADS) {
      const int slot = i / HIDDEN, unit = i % HIDDEN;
      if (!images.has(slot)) continue;
      const Index image = images.first + slot;
      memory.h[0][slot][unit] = state_at<WITH_H0>(h0, offset_in_h0(image, place.direction, unit));
      memory.c[slot][unit] = state_at<WITH_C0>(c0, offset_in_c0(image, place.direction, unit));
    }
    __syncthreads();

    for (int step = 0; step < STEPS; ++step) {
      if constexpr (TWO_PRODUCTS) {
        reset_states(operands, weights, place, images, step, memory, team);
        team.take(PASSED, 1, images, &memory.passed);
      }
      for (int round = 0; round < ROUNDS; ++round) {
        step_round(operands, weights, place, images, step, round, memory, team, {alpha, beta, user});
      }
      team.take((step + 1) % 2, 1, images, &memory.h[(step + 1) % 2]);
    }

    for_each_pair(place, images, [&](const Pair& pair) {
      const Index image = pair.image;
      if constexpr (WITH_HN) {
        hn[offset_in_hn(image, place.direction, pair.unit)] =
            from_float<THN>(memory.h[STEPS % 2][pair.slot][pair.unit]);
      }
      if constexpr (WITH_CN) {
        cn[offset_in_cn(image, place.direction, pair.unit)] = from_float<TCN>(memory.c[pair.slot][pair.unit]);
      }
    });
    __syncthreads();  // before the next images
  }
}
