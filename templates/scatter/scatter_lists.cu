// Sums of scatter where indices name whole slices of y: each position has a list of its updates, in any order, which
// all of its elements share. PARTS threads share an element, and add up the updates as integers, so that the order does
// not count (lib/exact_sum.cuh). Parameters: scatter_lists.cpp.
//
// counts: [POSITIONS] i32, the lengths of the lists, 0 at first; ends: [POSITIONS] i32, where they end in `lists`;
// lists: [COUNT] i32, numbers of updates; used: i32, elements of `lists` that have a list, 0 at first.
#include "lib/exact_sum.cuh"
#include "lib/lists.cuh"
#include "lib/scatter_lines.cuh"

constexpr int OF_BLOCK = THREADS / PARTS;  // elements

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

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_lists(const TUPDATES* updates, const i32* indices, TY* y, int* counts, int* ends, int* lists, int* used,
                  float alpha, float beta, UserArguments user, long long n) {
  __shared__ int shared_largest[OF_BLOCK];
  __shared__ unsigned long long shared_sums[OF_BLOCK];
  const int own = static_cast<int>(threadIdx.x) % OF_BLOCK, part = static_cast<int>(threadIdx.x) / OF_BLOCK;
  if (PARTS > 1 && part == 0) shared_largest[own] = 0, shared_sums[own] = 0;
  const Index lines = scatter_lines(n), number = static_cast<Index>(blockIdx.x) * OF_BLOCK + own;
  const bool is_there = number < lines * Index(POSITIONS);
  const InLine at(is_there ? number : 0, larger<Index>(lines, 1), DIVISOR);
  const int count = is_there ? counts[at.place] : 0;
  const int* const list = lists + (is_there ? ends[at.place] - count : 0);
  const TUPDATES* const of_line = updates + row_offset<UPDATES_OUTER_STRIDES>(at.line);
  const auto update = [&](int i) { return to_float(of_line[static_cast<Index>(list[i]) * Index(UPDATES_ALONG)]); };

  int largest = 0;
#pragma unroll 4
  for (int i = part; i < count; i += PARTS) largest = largest_of_both(largest, largest_of_term(update(i)));
  if constexpr (PARTS > 1) {
    __syncthreads();
    note_largest(shared_largest + own, largest);
    __syncthreads();
    largest = shared_largest[own];
  }
  unsigned long long sum = 0;
#pragma unroll 4
  for (int i = part; i < count; i += PARTS) sum += units_of_term(largest, update(i));
  if constexpr (PARTS > 1) {
    add_units(shared_sums + own, sum);
    __syncthreads();
    sum = shared_sums[own];
  }
  if (!is_there || part != 0) return;
  store_result(y, row_offset<Y_OUTER_STRIDES>(at.line) + at.place * Index(Y_ALONG), value_of_sum(sum, largest), 0,
               OutputArguments{alpha, beta, user});
}
