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

constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

// 2 to the power of `value`, in one instruction: relative error within 2^-22; results below 2^-126 become 0.
__device__ __forceinline__ float power_of_2(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

// e to the power of `value`, in three instructions: relative error within 2^-22 and 2^-23 for each unit of |value|;
// results below 2^-126 become 0. expf is more accurate and three times as long.
__device__ __forceinline__ float quick_exp(float value) {
  return power_of_2(value * LOG2_E);
}

// The logarithm to base 2, in one instruction: error within 2^-22, or 2^-22 of the result outside of 1/2 to 2.
__device__ __forceinline__ float log_2(float value) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

// A natural logarithm as one to base 2. What is finite stays finite: rounding towards zero ends at the lowest number.
__device__ __forceinline__ float in_base_2(float log) {
  return __fmul_rz(log, LOG2_E);
}
