// The arithmetic of softmax: statistics of a row that can be taken piece by piece, and its elements from them.
//
// A row that holds NaN or +inf, or nothing but -inf, comes out as NaN throughout, without a test for it: one of its
// exponentials is NaN (inf - inf, or NaN itself) and so is their sum.
#include "lib/math.cuh"

// Largest element of a part of a row, and the sum of exp(element - maximum) over it.
struct RowStatistics {
  float maximum;
  float sum;

  static __device__ __forceinline__ RowStatistics of_nothing() { return {-infinity(), 0.0f}; }

  // A part with nothing but -inf so far has the sum 0, as an empty one: (-inf) - (-inf) must not spoil a row that
  // continues with numbers. If it does not continue, the final subtraction of -inf gives the NaN that is due.
  static __device__ __forceinline__ float finite_or_zero(float maximum) {
    return maximum == -infinity() ? 0.0f : maximum;
  }

  // Continues with COUNT elements; rescales the sum once for all of them.
  template <int COUNT>
  __device__ __forceinline__ void add(const float (&elements)[COUNT]) {
    float larger = maximum;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) larger = fmaxf(larger, elements[i]);
    const float base = finite_or_zero(larger);
    sum *= quick_exp(maximum - base);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum += quick_exp(elements[i] - base);
    maximum = larger;
  }

  __device__ __forceinline__ void merge(const RowStatistics& other) {
    const float larger = fmaxf(maximum, other.maximum);
    const float base = finite_or_zero(larger);
    sum = sum * quick_exp(maximum - base) + other.sum * quick_exp(other.maximum - base);
    maximum = larger;
  }
};

// Turns elements of a row into those of its softmax (LOG: log-softmax), given the whole row's statistics.
template <bool LOG>
struct RowNormaliser {
  float maximum;
  float term;  // log(sum), or 1 / sum

  __device__ __forceinline__ RowNormaliser() {}
  __device__ __forceinline__ RowNormaliser(float row_maximum, float sum)
      : maximum(row_maximum), term(LOG ? logf(sum) : 1.0f / sum) {}

  __device__ __forceinline__ float operator()(float element) const {
    // maximum + log(sum) in one constant would be shorter, and lose digits where |maximum| is large.
    if constexpr (LOG) return element - maximum - term;
    return quick_exp(element - maximum) * term;
  }
};
