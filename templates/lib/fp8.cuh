// Storage types f8e4m3 and f8e5m2 (OCP 8-bit Floating Point Specification, revision 1.0), and their conversions to and
// from float. Sources have this file where one of their tensors is of these types.
//
// Conversions from float round to nearest, ties to even, and saturate: what is larger than the largest finite number,
// infinities too, becomes that number with its sign. NaN becomes the NaN 0x7f. The instructions of compute capability
// 8.9 (cvt.rn.satfinite) and the arithmetic for older devices give equal bits.

struct f8e4m3 {  // bias 7; 0x7f is NaN, and there is no infinity: 448 is 0x7e
  static constexpr int DIGITS = 4;
  unsigned char bits;
};

struct f8e5m2 {  // the upper half of a binary16; 57344 is 0x7b, infinity 0x7c
  static constexpr int DIGITS = 3;
  unsigned char bits;
};

__device__ __forceinline__ float to_float(f8e4m3 value) {
  // The fields moved to those of a binary32, of which only the bias differs: 127 - 7.
  const unsigned bits = value.bits;
  const float size = __uint_as_float((bits & 0x7fu) << 20) * 0x1p120f;
  const unsigned sign = (bits & 0x80u) << 24;
  return __uint_as_float(sign | ((bits & 0x7fu) == 0x7fu ? 0x7fffffffu : __float_as_uint(size)));
}

__device__ __forceinline__ float to_float(f8e5m2 value) {
  f16 wide;
  wide.bits = static_cast<unsigned short>(value.bits << 8);
  return to_float(wide);
}

// The bits of the nearest number with DIGITS digits, the implicit one included, whose normal numbers begin at
// 2^LEAST_EXPONENT, and whose largest number has the bits LARGEST.
template <int DIGITS, int LEAST_EXPONENT, unsigned LARGEST>
__device__ __forceinline__ unsigned char fp8_bits(float value) {
  constexpr int DROPPED = 24 - DIGITS;
  const unsigned bits = __float_as_uint(value);
  const unsigned size = bits & 0x7fffffffu;
  unsigned rounded;
  if (size < static_cast<unsigned>(127 + LEAST_EXPONENT) << 23) {
    // Subnormal: the sum has the least number's place as its last one, so that the addition rounds.
    constexpr unsigned SHIFT = static_cast<unsigned>(127 + LEAST_EXPONENT + DROPPED) << 23;
    rounded = __float_as_uint(__uint_as_float(size) + __uint_as_float(SHIFT)) - SHIFT;
  } else {
    // As for bf16 in lib/types.cuh; then the exponent is counted from that of the largest subnormal number.
    const unsigned kept = (size + (1u << (DROPPED - 1)) - 1u + ((size >> DROPPED) & 1u)) >> DROPPED;
    rounded = min(kept - (static_cast<unsigned>(126 + LEAST_EXPONENT) << (DIGITS - 1)), LARGEST);
  }
  return static_cast<unsigned char>(value != value ? 0x7fu : (bits >> 24 & 0x80u) | rounded);
}

// Whether there are instructions for it: from 9.0 on, and for 8.9 in compilers from 12.1 on.
#if __CUDA_ARCH__ >= 900 || (__CUDA_ARCH__ >= 890 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201)
constexpr bool CONVERTS_FP8 = true;
#else
constexpr bool CONVERTS_FP8 = false;
#endif

template <>
__device__ __forceinline__ f8e4m3 from_float<f8e4m3>(float value) {
  if constexpr (CONVERTS_FP8) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return {static_cast<unsigned char>(pair)};
  } else {
    return {fp8_bits<4, -6, 0x7eu>(value)};
  }
}

template <>
__device__ __forceinline__ f8e5m2 from_float<f8e5m2>(float value) {
  if constexpr (CONVERTS_FP8) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return {static_cast<unsigned char>(pair)};
  } else {
    return {fp8_bits<3, -14, 0x7bu>(value)};
  }
}

// Four numbers of the type of the first argument as two pairs of f16, which has all values of both types.
__device__ __forceinline__ void as_f16_pairs(f8e5m2, unsigned numbers, unsigned& low, unsigned& high) {
  low = __byte_perm(numbers, 0u, 0x1404);
  high = __byte_perm(numbers, 0u, 0x3424);
}

// The fields of two numbers, which are the upper bytes of both halves, moved to those of a binary16, of which only the
// bias differs: 15 - 7. What stands for NaN would be 480: it alone becomes infinite by the first product, which then
// adds NaN, and else 0.
__device__ __forceinline__ unsigned e4m3_as_f16(unsigned bits) {
  constexpr unsigned MOST = 0x78807880u, BIAS = 0x5c005c00u;  // twice 36864, 256
  const unsigned fields = (bits & 0x80008000u) | (bits >> 1 & 0x3f803f80u);
  unsigned result, too_large;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(too_large) : "r"(fields), "r"(MOST));
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(fields), "r"(BIAS));
  asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(result) : "r"(too_large), "r"(0u));
  return result;
}

__device__ __forceinline__ void as_f16_pairs(f8e4m3, unsigned numbers, unsigned& low, unsigned& high) {
  if constexpr (CONVERTS_FP8) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high;}"
        : "=r"(low), "=r"(high)
        : "r"(numbers));
  } else {
    low = e4m3_as_f16(__byte_perm(numbers, 0u, 0x1404));
    high = e4m3_as_f16(__byte_perm(numbers, 0u, 0x3424));
  }
}
