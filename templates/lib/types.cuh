// Storage types f32, f16, bf16, i32, i8 and u8, and their conversions to and from float.
//
// Every specialised source starts with this file. It needs no header, so that NVRTC compiles it by itself. Conversions
// from float round to nearest, ties to even; overflow gives infinity, and NaN stays NaN. Integers saturate, and NaN
// gives 0.

// The constants in front of a template state the whole problem and choice; no template needs each of them.
#pragma nv_diag_suppress 177

using f32 = float;

struct alignas(2) f16 {  // IEEE binary16
  unsigned short bits;
};

struct alignas(2) bf16 {  // the upper half of a binary32
  unsigned short bits;
};

__device__ __forceinline__ float to_float(f32 value) {
  return value;
}

__device__ __forceinline__ float to_float(f16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

__device__ __forceinline__ float to_float(bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

using i32 = int;
using i8 = signed char;
using u8 = unsigned char;

__device__ __forceinline__ float to_float(i32 value) {
  return static_cast<float>(value);
}

__device__ __forceinline__ float to_float(i8 value) {
  return static_cast<float>(value);
}

__device__ __forceinline__ float to_float(u8 value) {
  return static_cast<float>(value);
}

template <class T>
__device__ __forceinline__ T from_float(float value);

template <>
__device__ __forceinline__ f32 from_float<f32>(float value) {
  return value;
}

template <>
__device__ __forceinline__ f16 from_float<f16>(float value) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

template <>
__device__ __forceinline__ bf16 from_float<bf16>(float value) {
  bf16 result;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
  // Adding just under half a unit of the kept part, or exactly half if the kept part is odd, carries when rounding
  // up. NaN is apart: the carry could turn it into infinity.
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  result.bits = static_cast<unsigned short>(value != value ? 0x7fffu : rounded);
#endif
  return result;
}

template <>
__device__ __forceinline__ i32 from_float<i32>(float value) {
  return __float2int_rn(value);  // saturates; 0 for NaN
}

template <>
__device__ __forceinline__ i8 from_float<i8>(float value) {
  return static_cast<i8>(max(-128, min(127, __float2int_rn(value))));
}

template <>
__device__ __forceinline__ u8 from_float<u8>(float value) {
  return static_cast<u8>(max(0, min(255, __float2int_rn(value))));
}
