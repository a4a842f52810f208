// Windows along one axis in registers: a thread makes SEGMENT elements along the axis of each of NEIGHBOURS rows, from
// all that their windows reach, loaded at once.
//
// From the prelude: SEGMENT, ROW (the axis's extent), HAS_MEANS.
#include "lib/local_norm.cuh"

constexpr int REACH = SIZE - 1;  // elements that a window has beside its centre

using Values = float[NEIGHBOURS];

// COUNT elements along the axis. Outside the tensor both are 0.
template <int COUNT>
struct Line {
  Values x[COUNT];
  Values means[COUNT];

  __device__ __forceinline__ float distance(int i, int j) const { return HAS_MEANS ? x[i][j] - means[i][j] : x[i][j]; }
  // The sum of squares of the SIZE elements from number `first` on, of neighbour `j`.
  __device__ __forceinline__ float squares(int first, int j) const {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < SIZE; ++k) sum += distance(first + k, j) * distance(first + k, j);
    return sum;
  }
};

// The normalised elements; the line begins BEHIND elements before the segment.
__device__ __forceinline__ void normalise(const Line<SEGMENT + REACH>& line, const LocalNormNumbers& numbers,
                                          Values (&results)[SEGMENT]) {
#pragma unroll
  for (int i = 0; i < SEGMENT; ++i) {
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) {
      results[i][j] = line.x[BEHIND + i][j] * inverse_power(numbers.logarithm(line.squares(i, j)), numbers.beta);
    }
  }
}

// The gradients by x and by means of the segment that begins at `first`. The line begins REACH elements before it, dy
// AHEAD.
__device__ __forceinline__ void differentiate(const Line<SEGMENT + 2 * REACH>& line,
                                              const Values (&dy)[SEGMENT + REACH], int first,
                                              const LocalNormNumbers& numbers, Values (&by_x)[SEGMENT],
                                              Values (&by_means)[SEGMENT]) {
  Values terms[SEGMENT + REACH];  // of the elements of dy
#pragma unroll
  for (int i = 0; i < SEGMENT + REACH; ++i) {
    const int position = first - AHEAD + i;
    const bool inside = position >= 0 && position < ROW;
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) {
      const float logarithm = numbers.logarithm(line.squares(i, j));
      terms[i][j] = inside ? gradient_term(line.x[BEHIND + i][j], dy[i][j], logarithm, numbers) : 0.0f;
      if (i >= AHEAD && i - AHEAD < SEGMENT) by_x[i - AHEAD][j] = dy[i][j] * inverse_power(logarithm, numbers.beta);
    }
  }
#pragma unroll
  for (int i = 0; i < SEGMENT; ++i) {
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) {
      float sum = 0.0f;
#pragma unroll
      for (int k = 0; k < SIZE; ++k) sum += terms[i + k][j];
      const float through_sums = gradient_through_sums(line.distance(REACH + i, j), sum, numbers);
      by_x[i][j] += through_sums;
      by_means[i][j] = -through_sums;
    }
  }
}
