// Scalar functions.

__device__ __forceinline__ float infinity() {
  return __uint_as_float(0x7f800000u);
}
__device__ __forceinline__ float nan() {
  return __uint_as_float(0x7fffffffu);
}

__device__ __forceinline__ bool is_nan(float value) {
  return value != value;
}

// The larger of two, NaN if either is NaN (fmaxf drops NaN).
__device__ __forceinline__ float max_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a > b || is_nan(a) ? a : b;
#endif
}

// e to the power of `value`, in three instructions: relative error within 2^-22 and 2^-23 for each unit of |value|;
// results below 2^-126 become 0. expf is more accurate and three times as long.
__device__ __forceinline__ float quick_exp(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value * 1.4426950408889634f));
  return result;
}
