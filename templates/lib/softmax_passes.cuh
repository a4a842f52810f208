// The two passes of online softmax over a part of a row, each by a whole block of BLOCK threads: statistics with a
// running maximum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), then the result.
//
// Elements of the row are X_STEP and Y_STEP apart (lib/softmax_rows.cuh); VECTOR divides the length of the part.
#include "lib/index.cuh"
#include "lib/reduce.cuh"
#include "lib/softmax.cuh"
#include "lib/softmax_rows.cuh"

// Statistics of `length` elements from x on, for every thread.
template <int BLOCK>
__device__ __forceinline__ RowStatistics block_statistics(const TX* x, Index length, const UserArguments& user) {
  __shared__ float scratch[32];
  RowStatistics mine = RowStatistics::of_nothing();
#pragma unroll 4
  for (Index i = static_cast<Index>(threadIdx.x) * VECTOR; i < length; i += BLOCK * VECTOR) {
    float elements[VECTOR];
    as_floats(load_elements(x + i * Index(X_STEP), user), elements);
    mine.add(elements);
  }
  RowStatistics all;
  all.maximum = block_reduce<BLOCK>(mine.maximum, scratch, Maximum());
  mine.sum *= quick_exp(mine.maximum - RowStatistics::finite_or_zero(all.maximum));
  all.sum = block_reduce<BLOCK>(mine.sum, scratch, Sum());
  return all;
}

// The `length` elements of y from y_offset on, from those of x, by the statistics of the whole row; y may be x.
// Backwards: what the first pass read last is still in the cache. Several pieces are loaded before the first is stored,
// so that they travel together.
template <int BLOCK>
__device__ __forceinline__ void block_normalise(const TX* x, TY* y, Index y_offset, Index length,
                                                const RowStatistics& row, const OutputArguments& output) {
  constexpr int TOGETHER = 4;
  constexpr Index STRIDE = Index(BLOCK) * VECTOR;
  const RowNormaliser<LOG> normalised(row.maximum, row.sum);
  const Index first = static_cast<Index>(threadIdx.x) * VECTOR;
  const Index groups = ceil_div<Index>(length, STRIDE * TOGETHER);
  for (Index group = groups - 1; group >= 0; --group) {
    const Index begin = group * TOGETHER * STRIDE + first;
    float elements[TOGETHER][VECTOR];
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) {
      const Index i = begin + k * STRIDE;
      if (i < length) as_floats(load_elements(x + i * Index(X_STEP), output.user), elements[k]);
    }
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) {
      const Index i = begin + k * STRIDE;
      if (i >= length) break;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) elements[k][j] = normalised(elements[k][j]);
      store_along<Y_RUN, Y_STEP>(y, y_offset + i * Index(Y_STEP), elements[k], output);
    }
  }
}
