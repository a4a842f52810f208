// Which elements dropout keeps, and what becomes of them.
//
// Element number `element` in logical order has word element % 4 of Philox with the key `seed` and the counter
// (element / 4, offset), 64 bits each, low words first. It is kept where that word's upper 24 bits, as a fraction of 1,
// are not below p. So the mask depends on nothing else: no device, layout or configuration.
#include "lib/philox.cuh"

__device__ __forceinline__ PhiloxWords dropout_words(unsigned long long element, unsigned long long seed,
                                                     unsigned long long offset) {
  const unsigned long long block = element / 4;
  return philox4x32_10({{static_cast<unsigned>(block), static_cast<unsigned>(block >> 32),
                         static_cast<unsigned>(offset), static_cast<unsigned>(offset >> 32)}},
                       static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
}

// x / (1 - p) where it is kept, else 0, whatever x is.
__device__ __forceinline__ float dropped_out(float x, unsigned word, float p) {
  const bool kept = static_cast<float>(word >> 8) * 5.9604644775390625e-8f >= p;  // 2^-24
  return kept ? x * (1.0f / (1.0f - p)) : 0.0f;
}
