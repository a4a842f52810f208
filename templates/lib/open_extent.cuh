// The extents of an open kernel, which are known when it is loaded.
#pragma once

// An extent, with what a division by it takes: a multiplication instead, right for dividends below 2^31 (Granlund and
// Montgomery, Division by Invariant Integers using Multiplication). The host works it out: generator/specialise.cpp.
struct OpenExtent {
  int value, multiplier, shift;

  __device__ __forceinline__ operator int() const { return value; }
};

__device__ __forceinline__ unsigned quotient_of(unsigned value, OpenExtent extent) {
  return __umulhi(2 * value, static_cast<unsigned>(extent.multiplier)) >> extent.shift;
}
