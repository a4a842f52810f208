// Teams of blocks that go through the steps of recurrent layers, and of their gradients. Each block of a team has its
// part of the units, and their recurrent weights in registers where they fit (KEEP), else each step reads them again.
// Groups of LANES lanes share a unit; a group has UNITS units at a time. Blocks of a team run at once (a cooperative
// launch): behind each step they give each other what all have to see, through global memory, and wait.
//
// From the prelude: THREADS, LANES, UNITS, IMAGES (that a team has at a time), TEAM, KEEP, R_RUN (neighbours in a row
// of r that one access reads), IS_GRADIENT, and the constants of lib/recurrent.cuh.
#include "lib/block_memory.cuh"
#include "lib/recurrent.cuh"
#include "lib/reduce.cuh"
#include "lib/vector.cuh"

constexpr int WIDTH = 4;  // neighbours of a state that a lane takes at once
constexpr int GROUPS = THREADS / LANES;
constexpr int UNITS_OF_BLOCK = ceil_div(HIDDEN, TEAM);
constexpr int ROUNDS = ceil_div(UNITS_OF_BLOCK, GROUPS* UNITS);
constexpr int PIECES = ceil_div(HIDDEN, LANES* WIDTH);
constexpr int PADDED = PIECES * LANES * WIDTH;
constexpr int PAIRS = UNITS * IMAGES;  // units and images that a group has at a time
constexpr int PAIRS_OF_LANE = ceil_div(PAIRS, LANES);

static_assert(!KEEP || ROUNDS == 1, "a thread keeps the weights of one round");

using States = float[IMAGES][PADDED];  // zeros behind HIDDEN

// Place of a thread in its team.
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

// Weights that a unit has for the elements of a piece of a state: a part of the unit's row of r, for gradients of its
// column.
__device__ __forceinline__ Vector<TR, WIDTH> weights_of(const TR* r, const Place& place, int unit, int gate,
                                                        int piece) {
  const int first = (piece * LANES + place.lane) * WIDTH;
  const TR* const of_direction = r + place.direction * Index(R_STRIDE_D);
  if constexpr (!IS_GRADIENT && R_RUN == WIDTH) {
    if (unit >= HIDDEN || first >= HIDDEN) return zeros<TR, WIDTH>();
    return load_readonly<WIDTH>(of_direction + (gate * HIDDEN + unit) * Index(R_STRIDE_G) + first);
  }
  Vector<TR, WIDTH> result = zeros<TR, WIDTH>();
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) {
    const int row = gate * HIDDEN + (IS_GRADIENT ? first + i : unit), column = IS_GRADIENT ? unit : first + i;
    if (unit < HIDDEN && first + i < HIDDEN) {
      result[i] = load_readonly<1>(of_direction + row * Index(R_STRIDE_G) + column * Index(R_STRIDE_U))[0];
    }
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

// Adds a lane's part of the products of COUNT gates from FIRST on: with one state for all, or with one for each gate.
template <int FIRST, int COUNT, bool ONE_STATE>
__device__ __forceinline__ void add_products(const Weights& weights, const Place& place, int round,
                                             const States* states, Sums& sums) {
#pragma unroll(KEEP ? PIECES : 2)
  for (int piece = 0; piece < PIECES; ++piece) {
    Vector<float, WIDTH> state[IMAGES];
#pragma unroll
    for (int gate = FIRST; gate < FIRST + COUNT; ++gate) {
      if (gate == FIRST || !ONE_STATE) {
#pragma unroll
        for (int image = 0; image < IMAGES; ++image) {
          state[image] = load<WIDTH>(&states[ONE_STATE ? 0 : gate][image][(piece * LANES + place.lane) * WIDTH]);
        }
      }
#pragma unroll
      for (int i = 0; i < UNITS; ++i) {
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
}

// Sums of all lanes of a group, of COUNT gates from FIRST on.
template <int FIRST, int COUNT>
__device__ __forceinline__ void add_lanes(Sums& sums) {
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

// Memory in which the blocks of a team give each other STATES states, of which each has a part. A block by itself has
// no need of it.
template <int STATES>
class Team {
 public:
  static constexpr int COUNTER_WORDS = 32;  // a line of cache for each counter

  // Team number `number` of all that the launch has work for.
  __device__ __forceinline__ Team(float* workspace, Index number)
      : arrived_(reinterpret_cast<unsigned*>(workspace) + static_cast<long long>(number) * COUNTER_WORDS),
        states_(workspace + ceil_div<long long>(N, IMAGES) * DIRECTIONS * COUNTER_WORDS +
                static_cast<long long>(number) * STATES * IMAGES * HIDDEN) {}

  // Gives an element of state number `which`, whose place in this block is `here`.
  __device__ __forceinline__ void give(int which, const Pair& pair, float value, States& here) {
    if constexpr (TEAM == 1) {
      here[pair.slot][pair.unit] = value;
    } else {
      states_[(which * IMAGES + pair.slot) * HIDDEN + pair.unit] = value;
    }
  }

  // Waits until all have given `count` states from number `first` on, and takes them to `here`.
  __device__ __forceinline__ void take(int first, int count, const Images& images, States* here) {
    __syncthreads();
    if constexpr (TEAM > 1) {
      wait();
      for (int i = static_cast<int>(threadIdx.x); i < count * IMAGES * HIDDEN; i += THREADS) {
        const int line = i / HIDDEN, slot = line % IMAGES;
        // Not from L1, which may hold what was there before.
        if (images.has(slot)) here[line / IMAGES][slot][i % HIDDEN] = __ldcg(states_ + first * IMAGES * HIDDEN + i);
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
