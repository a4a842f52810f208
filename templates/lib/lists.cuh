// Lists of what belongs to each of some positions, in any order: for sums that do not depend on it (lib/exact_sum.cuh).
//
// counts: the lengths of the lists; they are counted first, atomically. place_list() then gives each list its place in
// one array, and next_in_list() the places of its elements. Afterwards `ends` are those of the lists.
#include "lib/types.cuh"

// Gives the list of a thread its place: those of a block one behind the other, behind those of blocks that came before
// it. `used`: elements of the array that have a list, 0 at first. All threads of a block call it.
__device__ __forceinline__ void place_list(int* used, int* end, int count, bool is_there) {
  __shared__ int of_block, begin;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  const int before = !is_there || count == 0 ? 0 : atomicAdd(&of_block, count);
  __syncthreads();
  if (threadIdx.x == 0) begin = of_block == 0 ? 0 : atomicAdd(used, of_block);
  __syncthreads();
  if (is_there) *end = begin + before;  // the begin, until the list is filled
}

// The place of a further element of a list.
__device__ __forceinline__ int next_in_list(int* end) {
  return atomicAdd(end, 1);
}
