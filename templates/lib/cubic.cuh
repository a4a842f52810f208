// Weights of the elements at `t` and at 1 - `t` behind and before a position, by Keys' kernel with the coefficient a.
__device__ __forceinline__ float cubic_inner(float t, float a) {
  return 1.0f - t * t * (a + 3.0f - (a + 2.0f) * t);
}
__device__ __forceinline__ float cubic_outer(float t, float rest, float a) {
  return a * t * rest * rest;
}
