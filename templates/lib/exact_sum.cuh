// Sums whose bits do not depend on the order of their terms, which threads add atomically: terms are integers, in units
// that follow from the largest of them. So they are gone through twice: for the largest, and for the sum.
//
// From the prelude: SUM_BITS, of the largest term; 63 less than these leave room for as many terms as there may be.
#include "lib/math.cuh"

constexpr int SUM_INFINITE = 0x100, SUM_MINUS_INFINITE = 0x200;  // among the terms; both where one is NaN

// Notes a term in the largest exponent of all, which is 0 at first.
__device__ __forceinline__ void note_term(int* largest, float term) {
  const int bits = __float_as_int(term), magnitude = bits & 0x7fffffff;
  if (magnitude == 0) return;
  if (magnitude < 0x7f800000) {
    atomicMax(largest, max(magnitude >> 23, 1));
  } else {
    const int sign = bits < 0 ? SUM_MINUS_INFINITE : SUM_INFINITE;
    atomicOr(largest, magnitude > 0x7f800000 ? SUM_INFINITE | SUM_MINUS_INFINITE : sign);
  }
}

// Adds a term to a sum, which is 0 at first.
__device__ __forceinline__ void add_term(unsigned long long* sum, int largest, float term) {
  const int bits = __float_as_int(term), magnitude = bits & 0x7fffffff;
  if (magnitude == 0 || largest >= SUM_INFINITE) return;
  const int exponent = max(magnitude >> 23, 1);
  const unsigned long long digits = (magnitude & 0x7fffff) | (magnitude >> 23 != 0 ? 0x800000 : 0);
  const int shift = SUM_BITS - 24 - (largest - exponent);
  unsigned long long units = 0;
  if (shift >= 0) {
    units = digits << shift;
  } else if (shift >= -24) {
    units = (digits + (1ull << (-shift - 1))) >> -shift;
  }
  if (units != 0) atomicAdd(sum, bits < 0 ? 0ull - units : units);
}

__device__ __forceinline__ float value_of_sum(unsigned long long sum, int largest) {
  if (largest >= SUM_INFINITE) {
    if ((largest & SUM_INFINITE) == 0) return -infinity();
    return (largest & SUM_MINUS_INFINITE) != 0 ? nan() : infinity();
  }
  return static_cast<float>(ldexp(static_cast<double>(static_cast<long long>(sum)), largest - 126 - SUM_BITS));
}
