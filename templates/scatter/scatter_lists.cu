// Sums of scatter where indices name whole slices of y: each position has a list of its updates, in any order, which
// all of its elements share. A thread takes VECTOR neighbours of a slice, which PARTS threads share, and adds up the
// updates as integers, so that the order does not count (lib/exact_sum.cuh). Parameters: scatter_lists.cpp.
//
// counts: [POSITIONS] i32, the lengths of the lists, 0 at first; ends: [POSITIONS] i32, where they end in `lists`;
// lists: [COUNT] i32, numbers of updates; used: i32, elements of `lists` that have a list, 0 at first.
#include "lib/exact_sum.cuh"
#include "lib/index.cuh"
#include "lib/lists.cuh"
#include "lib/rows.cuh"
#include "lib/scatter.cuh"
#include "lib/store.cuh"

constexpr int OF_BLOCK = THREADS / PARTS;                      // VECTORs of elements
constexpr int TOGETHER = VECTOR < 4 ? 4 : VECTOR < 8 ? 2 : 1;  // loads of a thread

__device__ __forceinline__ i32 position_of_update(const i32* indices, Index i) {
  return i < Index(COUNT) ? position_in_y(indices[i * Index(INDICES_ALONG)]) : -1;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_lists_count(const TUPDATES* updates, const i32* indices, TY* y, int* counts, int* ends, int* lists,
                        int* used, float alpha, float beta, UserArguments user, long long n) {
  const i32 position = position_of_update(indices, global_thread<THREADS, Index>());
  if (position >= 0) atomicAdd(counts + position, 1);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_lists_place(const TUPDATES* updates, const i32* indices, TY* y, int* counts, int* ends, int* lists,
                        int* used, float alpha, float beta, UserArguments user, long long n) {
  const Index position = global_thread<THREADS, Index>();
  const bool is_there = position < Index(POSITIONS);
  place_list(used, ends + position, is_there ? counts[position] : 0, is_there);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_lists_fill(const TUPDATES* updates, const i32* indices, TY* y, int* counts, int* ends, int* lists,
                       int* used, float alpha, float beta, UserArguments user, long long n) {
  const Index i = global_thread<THREADS, Index>();
  const i32 position = position_of_update(indices, i);
  if (position >= 0) lists[next_in_list(ends + position)] = static_cast<int>(i);
}

// Updates of VECTOR elements, of which one of PARTS threads takes its part.
struct Updates {
  const TUPDATES* first;  // update 0 of the first element
  const int* list;
  int count, part;

  // Calls use(v, update) for the updates of element v.
  template <class Use>
  __device__ __forceinline__ void for_each(const Use& use) const {
#pragma unroll TOGETHER
    for (int i = part; i < count; i += PARTS) {
      const Vector<TUPDATES, VECTOR> update =
          load_neighbours<UPDATES_RUN, UPDATES_STEP>(first + static_cast<Index>(list[i]) * Index(UPDATES_ALONG));
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) use(v, to_float(update[v]));
    }
  }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_lists(const TUPDATES* updates, const i32* indices, TY* y, int* counts, int* ends, int* lists, int* used,
                  float alpha, float beta, UserArguments user, long long n) {
  __shared__ int shared_largest[OF_BLOCK * VECTOR];
  __shared__ unsigned long long shared_sums[OF_BLOCK * VECTOR];
  const int own = static_cast<int>(threadIdx.x) % OF_BLOCK, part = static_cast<int>(threadIdx.x) / OF_BLOCK;
  if (PARTS > 1 && part == 0) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) shared_largest[own * VECTOR + v] = 0, shared_sums[own * VECTOR + v] = 0;
  }
  const Index number = static_cast<Index>(blockIdx.x) * OF_BLOCK + own;
  const bool is_there = number * VECTOR < scatter_lines(n) * Index(POSITIONS);
  Index outer = is_there ? number : 0;
  const Index column = ACROSS ? take_coordinate(outer, COLUMNS) * VECTOR : 0,
              position = take_coordinate(outer, DIVISOR);
  const int count = is_there ? counts[position] : 0;
  const Updates own_updates = {updates + row_offset<UPDATES_OUTER_STRIDES>(outer) + column * Index(UPDATES_STEP),
                               lists + (is_there ? ends[position] - count : 0), count, part};

  int largest[VECTOR] = {};
  own_updates.for_each([&](int v, float update) { largest[v] = largest_of_both(largest[v], largest_of_term(update)); });
  if constexpr (PARTS > 1) {
    __syncthreads();
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) note_largest(shared_largest + own * VECTOR + v, largest[v]);
    __syncthreads();
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) largest[v] = shared_largest[own * VECTOR + v];
  }
  unsigned long long sums[VECTOR] = {};
  own_updates.for_each([&](int v, float update) { sums[v] += units_of_term(largest[v], update); });
  if constexpr (PARTS > 1) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) add_units(shared_sums + own * VECTOR + v, sums[v]);
    __syncthreads();
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) sums[v] = shared_sums[own * VECTOR + v];
  }
  if (!is_there || part != 0) return;
  float results[VECTOR];
#pragma unroll
  for (int v = 0; v < VECTOR; ++v) results[v] = value_of_sum(sums[v], largest[v]);
  const Index first = row_offset<Y_OUTER_STRIDES>(outer) + column * Index(Y_STEP) + position * Index(Y_ALONG);
  store_along<Y_RUN, Y_STEP>(y, first, results, {alpha, beta, user});
}
