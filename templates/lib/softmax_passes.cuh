// The two passes of online softmax over a part of a contiguous row, each by a whole block of BLOCK threads: statistics
// with a running maximum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), then the result.
//
// COUNT, the elements of an access, divides the length of the part.
#include "lib/index.cuh"
#include "lib/reduce.cuh"
#include "lib/softmax.cuh"
#include "lib/store.cuh"
#include "lib/vector.cuh"

template <int COUNT, class T>
__device__ __forceinline__ void load_floats(const T* source, float (&elements)[COUNT]) {
  const Vector<T, COUNT> piece = load<COUNT>(source);
#pragma unroll
  for (int j = 0; j < COUNT; ++j) elements[j] = to_float(piece[j]);
}

// Of x[0 .. length), for every thread.
template <int BLOCK, int COUNT, class Offset, class T>
__device__ __forceinline__ RowStatistics block_statistics(const T* x, Offset length) {
  __shared__ float scratch[32];
  RowStatistics mine = RowStatistics::of_nothing();
#pragma unroll 4
  for (Offset i = static_cast<Offset>(threadIdx.x) * COUNT; i < length; i += BLOCK * COUNT) {
    float elements[COUNT];
    load_floats(x + i, elements);
    mine.add(elements);
  }
  RowStatistics all;
  all.maximum = block_reduce<BLOCK>(mine.maximum, scratch, Maximum());
  mine.sum *= quick_exp(mine.maximum - RowStatistics::finite_or_zero(all.maximum));
  all.sum = block_reduce<BLOCK>(mine.sum, scratch, Sum());
  return all;
}

// The elements of y from y_offset on from x[0 .. length), by the statistics of the whole row; y may be x. Backwards:
// what the first pass read last is still in the cache. Several pieces are loaded before the first is stored, so that
// they travel together.
template <int BLOCK, int COUNT, bool IS_LOG, class Offset>
__device__ __forceinline__ void block_normalise(const TX* x, TY* y, Offset y_offset, Offset length,
                                                const RowStatistics& row, const OutputArguments& output) {
  constexpr int TOGETHER = 4;
  constexpr Offset STRIDE = Offset(BLOCK) * COUNT;
  const RowNormaliser<IS_LOG> normalised(row.maximum, row.sum);
  const Offset first = static_cast<Offset>(threadIdx.x) * COUNT;
  const Offset groups = ceil_div<Offset>(length, STRIDE * TOGETHER);
  for (Offset group = groups - 1; group >= 0; --group) {
    const Offset begin = group * TOGETHER * STRIDE + first;
    float elements[TOGETHER][COUNT];
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) {
      if (begin + k * STRIDE < length) load_floats(x + begin + k * STRIDE, elements[k]);
    }
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) {
      if (begin + k * STRIDE >= length) break;
#pragma unroll
      for (int j = 0; j < COUNT; ++j) elements[k][j] = normalised(elements[k][j]);
      store_run<false>(y, y_offset + begin + k * STRIDE, elements[k], 0, output);
    }
  }
}
