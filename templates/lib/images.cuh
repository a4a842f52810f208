// From the prelude: N, DYNAMIC_N.

// Images of this call.
__device__ __forceinline__ Index images_of(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) : static_cast<Index>(N);
}
