// Number formats: bits of f32, f16 and bf16, exact conversions and correct rounding. Everything vectorises over lanes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "lanes.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

inline constexpr uint32_t canonical_nan = 0x7FFFFFFFu;
inline constexpr uint16_t canonical_half_nan = 0x7FFFu;

inline uint32_t bits_of(float x) {
  return std::bit_cast<uint32_t>(x);
}
inline uint64_t bits_of(double x) {
  return std::bit_cast<uint64_t>(x);
}
inline float float_of(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline bool is_nan(float x) {
  return x != x;
}
inline bool is_nan(double x) {
  return x != x;
}

/// Subnormals become zeros of the same sign, as .ftz says.
inline float flushed(float x) {
  const uint32_t bits = bits_of(x);
  return float_of((bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits);
}

/// .sat: [0, 1], NaN gives +0.
template <class T>
inline T saturated(T x) {
  const T low = x > T{0} ? x : T{0};
  return low < T{1} ? low : T{1};
}

/// x + y rounded to odd: rounding the result once more, to at most half as many bits less two, is as rounding once.
template <class T>
inline T add_to_odd(T x, T y) {
  using U = decltype(bits_of(x));
  const T sum = x + y;
  const T part = sum - x;
  const T error = (x - (sum - part)) + (y - part);  // exact (Knuth's two-sum), NaN when the sum is not finite
  const U bits = bits_of(sum);
  const bool inexact = error > T{0} || error < T{0};
  const bool away = (error > T{0}) == (sum > T{0});
  const U odd = away ? bits + 1 : bits - 1;
  return std::bit_cast<T>(inexact && (bits & 1) == 0 ? odd : bits);
}

/// A double as the float that rounds like it to 22 bits or fewer.
inline float to_float_odd(double x) {
  const float near = static_cast<float>(x);
  const double back = near;
  const uint32_t bits = bits_of(near);
  const bool inexact = back > x || back < x;
  // A finite value beyond the range must not become infinite: its odd neighbour is the largest float.
  const bool away = std::abs(back) < std::abs(x);
  return float_of(inexact && (bits & 1) == 0 ? (away ? bits + 1 : bits - 1) : bits);
}

inline float half_to_float(uint16_t h) {
  const uint32_t magnitude = h & 0x7FFFu;
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const float scaled = float_of(magnitude << 13) * 0x1p112f;  // exact, subnormals too
  const uint32_t finite = bits_of(scaled);
  return float_of(sign | (magnitude >= 0x7C00u ? 0x7F800000u | magnitude << 13 : finite));
}

/// To nearest even. NaN becomes the canonical one.
inline uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t normal = (magnitude + 0xC8000FFFu + (magnitude >> 13 & 1)) >> 13;
  const uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3F000000u;
  uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477FF000u ? 0x7C00u : result;
  return static_cast<uint16_t>(magnitude > 0x7F800000u ? canonical_half_nan : sign | result);
}

inline float bfloat_to_float(uint16_t b) {
  return float_of(static_cast<uint32_t>(b) << 16);
}

/// To nearest even. NaN becomes the canonical one.
inline uint16_t float_to_bfloat(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(is_nan(x) ? canonical_half_nan : rounded);
}

/// The 16-bit formats, for whole rows of `n` values (a multiple of 16).
struct F16 {
  static constexpr uint16_t one = 0x3C00, exponent = 0x7C00;
  static constexpr float smallest_normal = 0x1p-14f;
  static void widen(float* out, const uint16_t* in, int n) {
#if defined(__AVX512F__)  // as wide as the vectors that read it next, which would wait for the halves to meet in memory
    for (int k = 0; k < n; k += 16) {
      _mm512_storeu_ps(out + k, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + k))));
    }
#elif defined(__F16C__)
    for (int k = 0; k < n; k += 8) {
      _mm256_storeu_ps(out + k, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + k))));
    }
#else
    for (int k = 0; k < n; ++k) out[k] = half_to_float(in[k]);
#endif
  }
  static void narrow(uint16_t* out, const float* in, int n) {
#ifdef __F16C__
    for (int k = 0; k < n; k += 8) {
      const __m256 x = _mm256_loadu_ps(in + k);
      const __m256 ordered = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
      // A NaN whose payload is all ones becomes 0x7FFF.
      const __m256 canonical = _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF)), x, ordered);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + k), _mm256_cvtps_ph(canonical, _MM_FROUND_TO_NEAREST_INT));
    }
#else
    for (int k = 0; k < n; ++k) out[k] = float_to_half(in[k]);
#endif
  }
  /// a * b + c with one rounding: the product of two halves is exact in a float.
  static float fma_odd(float a, float b, float c) {
    return add_to_odd(a * b, c);
  }
};

struct BF16 {
  static constexpr uint16_t one = 0x3F80, exponent = 0x7F80;
  static constexpr float smallest_normal = 0x1p-126f;
  static void widen(float* out, const uint16_t* in, int n) {
    for (int k = 0; k < n; ++k) out[k] = bfloat_to_float(in[k]);
  }
  static void narrow(uint16_t* out, const float* in, int n) {
    for (int k = 0; k < n; ++k) out[k] = float_to_bfloat(in[k]);
  }
  /// The product needs a double's exponent range.
  static float fma_odd(float a, float b, float c) {
    return to_float_odd(add_to_odd(static_cast<double>(a) * b, static_cast<double>(c)));
  }
};

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
