// Floating-point operations on one lane, as the PTX ISA defines them.
#pragma once

#include <cmath>

#include "numerics.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

template <class T>
inline T quiet_nan() {
  if constexpr (sizeof(T) == 4) {
    return float_of(canonical_nan);
  } else {
    return std::bit_cast<double>(uint64_t{0x7FFFFFFFFFFFFFFF});
  }
}

template <class T>
inline T magnitude(T x) {
  using U = decltype(bits_of(x));
  return std::bit_cast<T>(static_cast<U>(bits_of(x) << 1 >> 1));
}

template <class T>
inline auto sign_bit(T x) {
  using U = decltype(bits_of(x));
  return bits_of(x) & ~(static_cast<U>(~U{0}) >> 1);
}

struct FloatAdd {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct FloatSub {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct FloatMul {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct FloatFma {
  static float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double apply(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct FloatDiv {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
/// "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 delivers NaN, otherwise it delivers 0."
struct FloatDivApprox {
  static float apply(float a, float b) {
    const float size = magnitude(b);
    const bool large = size > 0x1p126f && size < HUGE_VALF;
    const float zero = float_of(sign_bit(a) ^ sign_bit(b));
    const float beyond = magnitude(a) < HUGE_VALF ? zero : quiet_nan<float>();
    return large ? beyond : a / b;
  }
};
struct FloatAbs {
  template <class T>
  static T apply(T a) {
    return magnitude(a);
  }
};
struct FloatNeg {
  template <class T>
  static T apply(T a) {
    return -a;
  }
};
struct FloatCopysign {
  template <class T>
  static T apply(T a, T b) {
    return std::bit_cast<T>(bits_of(magnitude(b)) | sign_bit(a));
  }
};
struct FloatRcp {
  template <class T>
  static T apply(T a) {
    return T{1} / a;
  }
};
struct FloatSqrt {
  static float apply(float a) { return __builtin_sqrtf(a); }
  static double apply(double a) { return __builtin_sqrt(a); }
};
struct FloatRsqrt {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(1.0 / __builtin_sqrt(static_cast<double>(a)));
  }
};

/// A minimum unless `maximum`. A NaN loses against a number unless `nan` is set; two give the canonical NaN. With
/// `xorsign` magnitudes are compared, and the result has the product's sign.
struct Extreme {
  bool maximum = false, nan = false, xorsign = false;
};

/// -0 is below +0.
template <Extreme extreme>
struct FloatExtreme {
  template <class T>
  static T apply(T x, T y) {
    const T a = extreme.xorsign ? magnitude(x) : x, b = extreme.xorsign ? magnitude(y) : y;
    const auto zeros = extreme.maximum ? bits_of(a) & bits_of(b) : bits_of(a) | bits_of(b);
    const bool first = extreme.maximum ? a > b : a < b;
    T result = a == b ? std::bit_cast<T>(zeros) : first ? a : b;
    result = is_nan(a) ? (extreme.nan ? quiet_nan<T>() : b) : result;
    result = is_nan(b) ? (extreme.nan || is_nan(a) ? quiet_nan<T>() : a) : result;
    if constexpr (extreme.xorsign) {
      const T negated = std::bit_cast<T>(bits_of(result) | (sign_bit(x) ^ sign_bit(y)));
      return is_nan(result) ? result : negated;
    }
    return result;
  }
};

/// 2^x, relative error below 2^-22. Exact for integers.
struct Exp2 {
  static float apply(float x) {
    const float low = x < -151.0f ? -151.0f : x;
    const float clamped = low > 129.0f ? 129.0f : low;
    const float whole = __builtin_rintf(clamped);
    const float f = clamped - whole;
    float p = 1.525273e-5f;  // ln(2)^k / k!, k = 7 ... 1
    p = p * f + 1.5403530e-4f;
    p = p * f + 1.3333558e-3f;
    p = p * f + 9.6181291e-3f;
    p = p * f + 5.5504109e-2f;
    p = p * f + 2.4022651e-1f;
    p = p * f + 6.9314718e-1f;
    p = p * f + 1.0f;
    const int32_t n = static_cast<int32_t>(is_nan(x) ? 0.0f : whole);
    const int32_t half = n >> 1;  // in two steps, so that subnormal results come out
    const auto power = [](int32_t e) { return float_of(static_cast<uint32_t>(e + 127) << 23); };
    return p * power(half) * power(n - half);
  }
};

/// log2(x) by the series of atanh on [sqrt(1/2), sqrt(2)], in double precision.
struct Log2 {
  static float apply(float x) {
    const bool tiny = x < 0x1p-126f;
    const uint32_t bits = bits_of(tiny ? x * 0x1p32f : x);
    const uint32_t offset = bits - 0x3F3504F3u;  // sqrt(1/2)
    const int32_t exponent = static_cast<int32_t>(offset) >> 23;
    const double m = static_cast<double>(float_of(bits - (static_cast<uint32_t>(exponent) << 23)));
    const double s = (m - 1.0) / (m + 1.0), q = s * s;
    const double series = 1.0 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11)))));
    const float result = static_cast<float>(exponent - (tiny ? 32 : 0) + 2.8853900817779268 * s * series);
    const float special = x == 0.0f ? -HUGE_VALF : x < 0.0f ? quiet_nan<float>() : x;
    return x > 0.0f && x < HUGE_VALF ? result : special;
  }
};

struct Sine {
  static float apply(float x) { return static_cast<float>(__builtin_sin(static_cast<double>(x))); }
};
struct Cosine {
  static float apply(float x) { return static_cast<float>(__builtin_cos(static_cast<double>(x))); }
};
struct HyperbolicTangent {
  static float apply(float x) { return static_cast<float>(__builtin_tanh(static_cast<double>(x))); }
};

/// Op with .ftz on operands and result, and .sat.
template <class Op, bool flush, bool saturate>
struct Shaped {
  template <class... T>
  static float apply(T... operands) {
    float result = flush ? flushed(Op::apply(flushed(operands)...)) : Op::apply(operands...);
    if constexpr (saturate) result = saturated(result);
    return result;
  }
};

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
