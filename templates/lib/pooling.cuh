// The three ways to pool, as a running value: start(), add() for each element inside x, finish().
#include "lib/index.cuh"
#include "lib/math.cuh"

enum : int {
  POOL_MAX = 0,         // -inf if no element is inside, NaN if any is NaN
  POOL_AVG = 1,         // over the elements inside x; 0 if there are none
  POOL_AVG_PADDED = 2,  // over the window's elements inside the padded x
};

template <int MODE>
__device__ __forceinline__ float pool_start() {
  return MODE == POOL_MAX ? -infinity() : 0.0f;
}

template <int MODE>
__device__ __forceinline__ float pool_add(float value, float element) {
  return MODE == POOL_MAX ? max_nan(value, element) : value + element;
}

// `count`: the elements that an average divides by.
template <int MODE>
__device__ __forceinline__ float pool_finish(float value, float count) {
  if constexpr (MODE == POOL_MAX) return value;
  return count > 0.0f ? value / count : 0.0f;
}

// Factor in place of pool_finish(), where one count serves several values: one rounding more, and one division for all
// of them. Nothing inside gives the sum 0, and so the average 0.
__device__ __forceinline__ float pool_scale(float count) {
  return count > 0.0f ? 1.0f / count : 0.0f;
}

// How many taps of a window that starts at `start` lie in [low, high).
template <class Index>
__device__ __forceinline__ Index taps_inside(Index start, Index taps, Index dilation, Index low, Index high) {
  const Index first = start >= low ? 0 : (low - start + dilation - 1) / dilation;
  const Index end = start >= high ? 0 : (high - start + dilation - 1) / dilation;
  return larger<Index>(0, smaller(end, taps) - first);
}

// pool_add as a function object, for lib/reduce.cuh.
template <int MODE>
struct PoolCombine {
  __device__ __forceinline__ float operator()(float a, float b) const { return pool_add<MODE>(a, b); }
};

// The elements that an average divides by, from those along each axis: as floats, whose product does not overflow.
template <class Index>
__device__ __forceinline__ float pool_count(Index planes, Index rows, Index columns) {
  return static_cast<float>(planes) * static_cast<float>(rows) * static_cast<float>(columns);
}

// The taps along one axis that an average counts: those inside x, or also those in its padding.
template <int MODE, class Index>
__device__ __forceinline__ Index counted_taps(Index start, Index taps, Index dilation, Index extent, Index pad_end) {
  if constexpr (MODE == POOL_AVG) return taps_inside<Index>(start, taps, dilation, 0, extent);
  // No window starts before the padding does.
  return taps_inside<Index>(start, taps, dilation, start, extent + pad_end);
}
