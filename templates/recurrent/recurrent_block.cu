// The steps of a recurrent layer by a team of TEAM blocks for IMAGES images and a direction. Each block has its part of
// the units: the states of all units stay in its shared memory, and the recurrent weights of its own in registers where
// they fit (KEEP), else each step reads them again. Groups of LANES lanes share a row of r; a group has UNITS units at a
// time, of which it sums up all gates, so that the lane that computes a unit has them at hand. Blocks of a team run at
// once (a cooperative launch): behind each step they give each other their states through global memory, and wait.
// Parameters: recurrent_block.cpp.
#include "lib/block_memory.cuh"
#include "lib/recurrent.cuh"
#include "lib/reduce.cuh"
#include "lib/store.cuh"

constexpr int WIDTH = 4;  // neighbours of a state that a lane takes at once
constexpr int GROUPS = THREADS / LANES;
constexpr int UNITS_OF_BLOCK = ceil_div(HIDDEN, TEAM);
constexpr int ROUNDS = ceil_div(UNITS_OF_BLOCK, GROUPS * UNITS);
constexpr int PIECES = ceil_div(HIDDEN, LANES * WIDTH);
constexpr int PADDED = PIECES * LANES * WIDTH;
constexpr int PAIRS = UNITS * IMAGES;  // units and images that a group has at a time
constexpr int PAIRS_OF_LANE = ceil_div(PAIRS, LANES);
constexpr bool TWO_PRODUCTS = CELL == CELL_GRU && RESETS_BEFORE;

static_assert(!KEEP || ROUNDS == 1, "a thread keeps the weights of one round");

using States = float[IMAGES][PADDED];  // zeros behind HIDDEN

struct Memory {
  States h[2];    // before a step and behind it
  States c;       // each element is one thread's
  States passed;  // what the reset gate of a GRU lets through
};
static_assert(sizeof(Memory) == MEMORY_BYTES, "the launch asks for as much");

// What a thread is in its team.
struct Place {
  int lane, group, member, direction;
  __device__ __forceinline__ Place()
      : lane(static_cast<int>(threadIdx.x) % LANES),
        group(static_cast<int>(threadIdx.x) / LANES),
        member(static_cast<int>(blockIdx.y) / DIRECTIONS),
        direction(static_cast<int>(blockIdx.y) % DIRECTIONS) {}
  // A number beyond HIDDEN where there is no such unit.
  __device__ __forceinline__ int unit(int round, int i) const {
    const int of_block = (round * GROUPS + group) * UNITS + i;
    return of_block < UNITS_OF_BLOCK ? member * UNITS_OF_BLOCK + of_block : HIDDEN;
  }
};

// Weights of a row for the state's elements of a piece.
__device__ __forceinline__ Vector<TR, WIDTH> weights_of(const TR* r, const Place& place, int unit, int gate, int piece) {
  const int first = (piece * LANES + place.lane) * WIDTH;
  const TR* const row = r + place.direction * Index(R_STRIDE_D) + (gate * HIDDEN + unit) * Index(R_STRIDE_G);
  if constexpr (R_RUN == WIDTH) {
    return unit < HIDDEN && first < HIDDEN ? load_readonly<WIDTH>(row + first) : zeros<TR, WIDTH>();
  }
  Vector<TR, WIDTH> result = zeros<TR, WIDTH>();
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) {
    if (unit < HIDDEN && first + i < HIDDEN) result[i] = load_readonly<1>(row + (first + i) * Index(R_STRIDE_U))[0];
  }
  return result;
}

// The weights of a thread.
class Weights {
 public:
  __device__ __forceinline__ Weights(const TR* r, const Place& place) : r_(r), place_(place) {
#pragma unroll
    for (int i = 0; KEEP && i < UNITS * GATES * PIECES; ++i) {
      const int unit = place.unit(0, i / (GATES * PIECES));
      kept_[i] = weights_of(r, place, unit, i / PIECES % GATES, i % PIECES);
    }
  }

  __device__ __forceinline__ Vector<TR, WIDTH> at(int round, int i, int gate, int piece) const {
    if constexpr (KEEP) return kept_[(i * GATES + gate) * PIECES + piece];
    return weights_of(r_, place_, place_.unit(round, i), gate, piece);
  }

 private:
  const TR* r_;
  Place place_;
  Vector<TR, WIDTH> kept_[KEEP ? UNITS * GATES * PIECES : 1];
};

using Sums = float[UNITS][GATES][IMAGES];

// Adds the products of COUNT gates from FIRST on with `states`.
template <int FIRST, int COUNT>
__device__ __forceinline__ void add_products(const Weights& weights, const Place& place, int round,
                                             const States& states, Sums& sums) {
#pragma unroll(KEEP ? PIECES : 2)
  for (int piece = 0; piece < PIECES; ++piece) {
    Vector<float, WIDTH> state[IMAGES];
#pragma unroll
    for (int image = 0; image < IMAGES; ++image) {
      state[image] = load<WIDTH>(&states[image][(piece * LANES + place.lane) * WIDTH]);
    }
#pragma unroll
    for (int i = 0; i < UNITS; ++i) {
#pragma unroll
      for (int gate = FIRST; gate < FIRST + COUNT; ++gate) {
        const Vector<TR, WIDTH> row = weights.at(round, i, gate, piece);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
#pragma unroll
          for (int image = 0; image < IMAGES; ++image) {
            sums[i][gate][image] = fmaf(to_float(row[k]), state[image][k], sums[i][gate][image]);
          }
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < UNITS; ++i) {
#pragma unroll
    for (int gate = FIRST; gate < FIRST + COUNT; ++gate) {
#pragma unroll
      for (int image = 0; image < IMAGES; ++image) {
        sums[i][gate][image] = lanes_reduce<LANES>(sums[i][gate][image], Sum{});
      }
    }
  }
}

// The sum of a gate for pair number `number` of this lane.
__device__ __forceinline__ float sum_of_pair(const Sums& sums, int gate, int number, int lane) {
  float result = 0.0f;
#pragma unroll
  for (int i = 0; i < LANES; ++i) {
    const int pair = number * LANES + i;
    if (pair < PAIRS) result = lane == i ? sums[pair / IMAGES][gate][pair % IMAGES] : result;
  }
  return result;
}

// The images of a team at a time: from the first on, as many as there are.
struct Images {
  Index first, all;
  __device__ __forceinline__ bool has(int slot) const { return first + slot < all; }
};

// A unit of an image that a lane computes.
struct Pair {
  int unit, slot;  // the image's number in the team
  Index image;
  bool is_there;
};

__device__ __forceinline__ Pair pair_of(const Place& place, int round, int number, const Images& images) {
  const int pair = number * LANES + place.lane;
  const int unit = place.unit(round, pair / IMAGES), slot = pair % IMAGES;
  return {unit, slot, images.first + slot, pair < PAIRS && unit < HIDDEN && images.has(slot)};
}

// Calls `use` with every pair of this lane that is there.
template <class Use>
__device__ __forceinline__ void for_each_pair(const Place& place, const Images& images, Use use) {
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int number = 0; number < PAIRS_OF_LANE; ++number) {
      const Pair pair = pair_of(place, round, number, images);
      if (pair.is_there) use(pair);
    }
  }
}

// What a team gives each other: the states that each block has a part of. A block by itself has no need of it.
class Team {
 public:
  static constexpr int STATES = 3;           // before a step and behind it, in turns; what the reset gate lets through
  static constexpr int COUNTER_WORDS = 32;   // a line of cache for each counter

  // Team number `number` of all that the launch has work for.
  __device__ __forceinline__ Team(float* workspace, Index number)
      : arrived_(reinterpret_cast<unsigned*>(workspace) + number * COUNTER_WORDS),
        states_(workspace + ceil_div<Index>(N, IMAGES) * DIRECTIONS * COUNTER_WORDS + number * (STATES * IMAGES * HIDDEN)) {}

  // Gives an element of state number `which`, whose place in this block is `here`.
  __device__ __forceinline__ void give(int which, const Pair& pair, float value, States& here) {
    if constexpr (TEAM == 1) {
      here[pair.slot][pair.unit] = value;
    } else {
      states_[(which * IMAGES + pair.slot) * HIDDEN + pair.unit] = value;
    }
  }

  // Waits until all have given theirs, and takes them.
  __device__ __forceinline__ void take(int which, const Images& images, States& here) {
    __syncthreads();
    if constexpr (TEAM > 1) {
      wait();
      for (int i = static_cast<int>(threadIdx.x); i < IMAGES * HIDDEN; i += THREADS) {
        const int slot = i / HIDDEN;
        // Not from L1, which may hold what was there before.
        if (images.has(slot)) here[slot][i % HIDDEN] = __ldcg(states_ + which * IMAGES * HIDDEN + i);
      }
      __syncthreads();
    }
  }

 private:
  __device__ __forceinline__ void wait() {
    awaited_ += TEAM;
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived_, 1u);
      while (*static_cast<volatile unsigned*>(arrived_) < awaited_) {
      }
      __threadfence();
    }
    __syncthreads();
  }

  unsigned* arrived_;
  float* states_;
  unsigned awaited_ = 0;
};

// Place in time of step number `number` of an image that has `length`.
__device__ __forceinline__ int time_of(int number, int length, int direction) {
  return number < length && goes_back(direction) ? length - 1 - number : number;
}

// The operands that the steps read and write.
struct Operands {
  const TGATES* gates;
  const TR_BIAS* r_bias;
  const TPEEPHOLES* peepholes;
  const int* lengths;
  TY* y;
};

__device__ __forceinline__ float input_of(const Operands& operands, const Place& place, const Pair& pair, int step,
                                          int gate) {
  if (!pair.is_there) return 0.0f;
  const int time = time_of(step, length_of(operands.lengths, pair.image), place.direction);
  const int row = gate * HIDDEN + pair.unit;
  const Index offset = offset_in_gates(pair.image, time, place.direction, row);
  return to_float(load_readonly<1>(operands.gates + offset)[0]);
}

__device__ __forceinline__ float bias_of(const Operands& operands, const Place& place, const Pair& pair, int gate) {
  return pair.is_there ? r_bias_at(operands.r_bias, place.direction, gate * HIDDEN + pair.unit) : 0.0f;
}

// Gives what the reset gates let through, where they stand in front of the product.
__device__ __forceinline__ void reset_states(const Operands& operands, const Weights& weights, const Place& place,
                                             const Images& images, int step, const States& before, States& passed,
                                             Team& team) {
  for (int round = 0; round < ROUNDS; ++round) {
    Sums sums = {};
    add_products<RESET_GATE, 1>(weights, place, round, before, sums);
#pragma unroll
    for (int number = 0; number < PAIRS_OF_LANE; ++number) {
      const Pair pair = pair_of(place, round, number, images);
      const float product =
          sum_of_pair(sums, RESET_GATE, number, place.lane) + bias_of(operands, place, pair, RESET_GATE);
      const float reset = logistic(input_of(operands, place, pair, step, RESET_GATE) + product);
      if (pair.is_there) team.give(2, pair, reset * before[pair.slot][pair.unit], passed);
    }
  }
}

// One step of a round of units.
__device__ __forceinline__ void step_round(const Operands& operands, const Weights& weights, const Place& place,
                                           const Images& images, int step, int round, Memory& memory, Team& team,
                                           const OutputArguments& output) {
  const States& before = memory.h[step % 2];
  States& behind = memory.h[(step + 1) % 2];
  float inputs[PAIRS_OF_LANE][GATES];
#pragma unroll
  for (int i = 0; i < PAIRS_OF_LANE * GATES; ++i) {
    const Pair pair = pair_of(place, round, i / GATES, images);
    inputs[i / GATES][i % GATES] = input_of(operands, place, pair, step, i % GATES);
  }
  Sums sums = {};
  if constexpr (TWO_PRODUCTS) {
    add_products<UPDATE_GATE, 1>(weights, place, round, before, sums);
    add_products<NEW_GATE, 1>(weights, place, round, memory.passed, sums);
  } else {
    add_products<0, GATES>(weights, place, round, before, sums);
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
    const RecurrentState next =
        next_state(inputs[number], products, peepholes_at(operands.peepholes, place.direction, pair.unit), old);
    const int length = length_of(operands.lengths, pair.image);
    const bool counts = step < length;
    team.give((step + 1) % 2, pair, counts ? next.h : old.h, behind);
    memory.c[pair.slot][pair.unit] = counts ? next.c : old.c;
    const int time = time_of(step, length, place.direction);
    store_result(operands.y, offset_in_y(pair.image, time, place.direction, pair.unit),
                 counts ? next.h : 0.0f, 0, output);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    recurrent_block(const TGATES* gates, const TR* r, const TR_BIAS* r_bias, const TPEEPHOLES* peepholes, const TH0* h0,
                    const TC0* c0, const int* lengths, TY* y, THN* hn, TCN* cn, float* workspace, float alpha,
                    float beta, UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const Place place;
  const Operands operands = {gates, r_bias, peepholes, lengths, y};
  const Index all = DYNAMIC_N ? static_cast<Index>(n) : Index(N);
  const Weights weights(r, place);
  for (Index turn = blockIdx.x; turn * IMAGES < all; turn += gridDim.x) {
    const Images images = {turn * IMAGES, all};
    Team team(workspace, turn * DIRECTIONS + place.direction);
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
        reset_states(operands, weights, place, images, step, memory.h[step % 2], memory.passed, team);
        team.take(2, images, memory.passed);
      }
      for (int round = 0; round < ROUNDS; ++round) {
        step_round(operands, weights, place, images, step, round, memory, team, {alpha, beta, user});
      }
      team.take((step + 1) % 2, images, memory.h[(step + 1) % 2]);
    }

    for_each_pair(place, images, [&](const Pair& pair) {
      const Index image = pair.image;
      if constexpr (WITH_HN) {
        hn[offset_in_hn(image, place.direction, pair.unit)] =
            from_float<THN>(memory.h[STEPS % 2][pair.slot][pair.unit]);
      }
      if constexpr (WITH_CN) {
        cn[offset_in_cn(image, place.direction, pair.unit)] =
            from_float<TCN>(memory.c[pair.slot][pair.unit]);
      }
    });
    __syncthreads();  // before the next images
  }
}
