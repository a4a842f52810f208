// Sums whose bits do not depend on the order of their terms: terms are added as integers, in units that follow from the
// largest of them. So they are gone through twice: for the largest, and for the sum.
//
// The largest is an exponent of f32, or flags of terms that are not finite; of no term, and of zeros, it is 0. From the
// prelude: SUM_BITS, of the largest term; 63 less than these leave room for as many terms as there may be.
#include "lib/math.cuh"

constexpr int SUM_INFINITE = 0x100, SUM_MINUS_INFINITE = 0x200;  // among the terms; both where one is NaN

// The largest of one term.
__device__ __forceinline__ int largest_of_term(float term) {
  const int bits = __float_as_int(term), magnitude = bits & 0x7fffffff;
  if (magnitude == 0) return 0;
  if (magnitude < 0x7f800000) return max(magnitude >> 23, 1);
  if (magnitude > 0x7f800000) return SUM_INFINITE | SUM_MINUS_INFINITE;
  return bits < 0 ? SUM_MINUS_INFINITE : SUM_INFINITE;
}

// The largest of the terms of both.
__device__ __forceinline__ int largest_of_both(int a, int b) {
  return (a | b) < SUM_INFINITE ? max(a, b) : (a | b) & (SUM_INFINITE | SUM_MINUS_INFINITE);
}

// Notes what is the largest of some terms in that of all, which other threads do as well.
__device__ __forceinline__ void note_largest(int* of_all, int largest) {
  if (largest == 0) return;
  if (largest < SUM_INFINITE) {
    atomicMax(of_all, largest);
  } else {
    atomicOr(of_all, largest & (SUM_INFINITE | SUM_MINUS_INFINITE));
  }
}

// A term as an integer, whose sums are those of all terms with this `largest`.
__device__ __forceinline__ unsigned long long units_of_term(int largest, float term) {
  const int bits = __float_as_int(term), magnitude = bits & 0x7fffffff;
  if (magnitude == 0 || largest >= SUM_INFINITE) return 0;
  const int exponent = max(magnitude >> 23, 1);
  const unsigned long long digits = (magnitude & 0x7fffff) | (magnitude >> 23 != 0 ? 0x800000 : 0);
  const int shift = SUM_BITS - 24 - (largest - exponent);
  unsigned long long units = 0;
  if (shift >= 0) {
    units = digits << shift;
  } else if (shift >= -24) {
    units = (digits + (1ull << (-shift - 1))) >> -shift;
  }
  return bits < 0 ? 0ull - units : units;
}

// Adds integers to a sum, which other threads do as well.
__device__ __forceinline__ void add_units(unsigned long long* sum, unsigned long long units) {
  if (units != 0) atomicAdd(sum, units);
}

__device__ __forceinline__ float value_of_sum(unsigned long long sum, int largest) {
  if (largest == 0) return 0.0f;
  if (largest >= SUM_INFINITE) {
    if ((largest & SUM_INFINITE) == 0) return -infinity();
    return (largest & SUM_MINUS_INFINITE) != 0 ? nan() : infinity();
  }
  return static_cast<float>(ldexp(static_cast<double>(static_cast<long long>(sum)), largest - 126 - SUM_BITS));
}
