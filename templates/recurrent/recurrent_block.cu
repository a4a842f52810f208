// The steps of a recurrent layer by one block for IMAGES images and a direction: states stay in shared memory, and the
// recurrent weights in registers where they fit (KEEP), else each step reads them again. Groups of LANES lanes share a
// row of r; a group has UNITS units at a time, of which it sums up all gates, so that the lane that computes a unit has
// them at hand. Parameters: recurrent_block.cpp.
#include "lib/block_memory.cuh"
#include "lib/recurrent.cuh"
#include "lib/reduce.cuh"
#include "lib/store.cuh"

constexpr int WIDTH = 4;  // neighbours of a state that a lane takes at once
constexpr int GROUPS = THREADS / LANES;
constexpr int ROUNDS = ceil_div(HIDDEN, GROUPS * UNITS);
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

// What a thread is in its block.
struct Place {
  int lane, group, direction;
  __device__ __forceinline__ Place()
      : lane(static_cast<int>(threadIdx.x) % LANES),
        group(static_cast<int>(threadIdx.x) / LANES),
        direction(static_cast<int>(blockIdx.y)) {}
  __device__ __forceinline__ int unit(int round, int i) const { return (round * GROUPS + group) * UNITS + i; }
};

// Weights of a row for the state's elements of a piece.
__device__ __forceinline__ Vector<TR, WIDTH> weights_of(const TR* r, const Place& place, int unit, int gate, int piece) {
  const int first = (piece * LANES + place.lane) * WIDTH;
  const TR* const row = r + place.direction * STRIDE<R_STRIDES, 0> + (gate * HIDDEN + unit) * STRIDE<R_STRIDES, 1>;
  if constexpr (R_RUN == WIDTH) {
    return unit < HIDDEN && first < HIDDEN ? load_readonly<WIDTH>(row + first) : zeros<TR, WIDTH>();
  }
  Vector<TR, WIDTH> result = zeros<TR, WIDTH>();
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) {
    if (unit < HIDDEN && first + i < HIDDEN) result[i] = load_readonly<1>(row + (first + i) * STRIDE<R_STRIDES, 2>)[0];
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

// A unit of an image that a lane computes.
struct Pair {
  int unit, slot;  // the image's number in the block
  Index image;
  bool is_there;
};

__device__ __forceinline__ Pair pair_of(const Place& place, int round, int number, Index images) {
  const int pair = number * LANES + place.lane;
  const int unit = place.unit(round, pair / IMAGES), slot = pair % IMAGES;
  const Index image = static_cast<Index>(blockIdx.x) * IMAGES + slot;
  return {unit, slot, image, pair < PAIRS && unit < HIDDEN && image < images};
}

// Calls `use` with every pair of this lane that is there.
template <class Use>
__device__ __forceinline__ void for_each_pair(const Place& place, Index images, Use use) {
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int number = 0; number < PAIRS_OF_LANE; ++number) {
      const Pair pair = pair_of(place, round, number, images);
      if (pair.is_there) use(pair);
    }
  }
}

// Place in time of step number `number` of an image that has `length`.
__device__ __forceinline__ int time_of(int number, int length, int direction) {
  return number < length && goes_back(direction) ? length - 1 - number : number;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    recurrent_block(const TGATES* gates, const TR* r, const TR_BIAS* r_bias, const TPEEPHOLES* peepholes, const TH0* h0,
                    const TC0* c0, const int* lengths, TY* y, THN* hn, TCN* cn, const float*, float alpha, float beta,
                    UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const Place place;
  const Index images = DYNAMIC_N ? static_cast<Index>(n) : Index(N);
  for (int i = static_cast<int>(threadIdx.x); i < MEMORY_BYTES / 4; i += THREADS) {
    reinterpret_cast<float*>(&memory)[i] = 0.0f;
  }
  __syncthreads();
  for_each_pair(place, images, [&](const Pair& pair) {
    const Index image = pair.image;
    memory.h[0][pair.slot][pair.unit] =
        state_at<WITH_H0>(h0, offset_in_state<H0_STRIDES>(image, place.direction, pair.unit));
    memory.c[pair.slot][pair.unit] =
        state_at<WITH_C0>(c0, offset_in_state<C0_STRIDES>(image, place.direction, pair.unit));
  });
  const Weights weights(r, place);
  __syncthreads();

  for (int step = 0; step < STEPS; ++step) {
    const States& before = memory.h[step % 2];
    States& behind = memory.h[(step + 1) % 2];
    const auto input_of = [&](const Pair& pair, int gate) {
      if (!pair.is_there) return 0.0f;
      const int time = time_of(step, length_of(lengths, pair.image), place.direction);
      const Index offset =
          offset_in_steps<GATES_STRIDES>(pair.image, time, place.direction, gate * HIDDEN + pair.unit);
      return to_float(load_readonly<1>(gates + offset)[0]);
    };
    const auto bias_of = [&](const Pair& pair, int gate) {
      return pair.is_there ? r_bias_at(r_bias, place.direction, gate * HIDDEN + pair.unit) : 0.0f;
    };

    for (int round = 0; TWO_PRODUCTS && round < ROUNDS; ++round) {
      Sums sums = {};
      add_products<RESET_GATE, 1>(weights, place, round, before, sums);
#pragma unroll
      for (int number = 0; number < PAIRS_OF_LANE; ++number) {
        const Pair pair = pair_of(place, round, number, images);
        const float product = sum_of_pair(sums, RESET_GATE, number, place.lane) + bias_of(pair, RESET_GATE);
        const float reset = logistic(input_of(pair, RESET_GATE) + product);
        if (pair.is_there) memory.passed[pair.slot][pair.unit] = reset * before[pair.slot][pair.unit];
      }
    }
    if constexpr (TWO_PRODUCTS) __syncthreads();

    for (int round = 0; round < ROUNDS; ++round) {
      float inputs[PAIRS_OF_LANE][GATES];
#pragma unroll
      for (int i = 0; i < PAIRS_OF_LANE * GATES; ++i) {
        inputs[i / GATES][i % GATES] = input_of(pair_of(place, round, i / GATES, images), i % GATES);
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
          products[gate] = sum_of_pair(sums, gate, number, place.lane) + bias_of(pair, gate);
        }
        if (!pair.is_there) continue;
        const RecurrentState old = {before[pair.slot][pair.unit], memory.c[pair.slot][pair.unit]};
        const RecurrentState next =
            next_state(inputs[number], products, peepholes_at(peepholes, place.direction, pair.unit), old);
        const int length = length_of(lengths, pair.image);
        const bool counts = step < length;
        behind[pair.slot][pair.unit] = counts ? next.h : old.h;
        memory.c[pair.slot][pair.unit] = counts ? next.c : old.c;
        const int time = time_of(step, length, place.direction);
        store_result(y, offset_in_steps<Y_STRIDES>(pair.image, time, place.direction, pair.unit),
                     counts ? next.h : 0.0f, 0, {alpha, beta, user});
      }
    }
    __syncthreads();
  }

  for_each_pair(place, images, [&](const Pair& pair) {
    if constexpr (WITH_HN) {
      hn[offset_in_state<HN_STRIDES>(pair.image, place.direction, pair.unit)] =
          from_float<THN>(memory.h[STEPS % 2][pair.slot][pair.unit]);
    }
    if constexpr (WITH_CN) {
      cn[offset_in_state<CN_STRIDES>(pair.image, place.direction, pair.unit)] =
          from_float<TCN>(memory.c[pair.slot][pair.unit]);
    }
  });
}
