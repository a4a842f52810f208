// The integer operations on one lane, as the PTX ISA defines them. Written so that a loop over lanes vectorises.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "lanes.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

// clang-format off
template <class T> struct Wider;
template <> struct Wider<uint16_t> { using type = uint32_t; };
template <> struct Wider<int16_t> { using type = int32_t; };
template <> struct Wider<uint32_t> { using type = uint64_t; };
template <> struct Wider<int32_t> { using type = int64_t; };
template <> struct Wider<uint64_t> { using type = unsigned __int128; };
template <> struct Wider<int64_t> { using type = __int128; };
template <class T> using Wide = typename Wider<T>::type;
template <class T> using Bits = std::make_unsigned_t<T>;
template <class T> inline constexpr uint32_t width = 8 * sizeof(T);
// clang-format on

template <class T>
inline T wrap_mul(T a, T b) {
  // 16-bit operands promote to int: widen to keep the multiplication free of overflow.
  using Work = std::conditional_t<(sizeof(T) < 4), uint32_t, Bits<T>>;
  return static_cast<T>(static_cast<Work>(a) * static_cast<Work>(b));
}

template <class T>
inline T high_mul(T a, T b) {
  return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> width<T>);
}

inline int32_t saturate_32(int64_t x) {
  constexpr int64_t low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(x < low ? low : x > high ? high : x);
}

struct Move {
  template <class T>
  static T apply(T a) {
    return a;
  }
};
struct Add {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
  }
};
struct Sub {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Bits<T>>(a) - static_cast<Bits<T>>(b));
  }
};
struct AddSat {
  static int32_t apply(int32_t a, int32_t b) { return saturate_32(int64_t{a} + b); }
};
struct SubSat {
  static int32_t apply(int32_t a, int32_t b) { return saturate_32(int64_t{a} - b); }
};
struct MulLo {
  template <class T>
  static T apply(T a, T b) {
    return wrap_mul(a, b);
  }
};
struct MulHi {
  template <class T>
  static T apply(T a, T b) {
    return high_mul(a, b);
  }
};
struct MulWide {
  template <class T>
  static Wide<T> apply(T a, T b) {
    return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
  }
};
struct MadLo {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(wrap_mul(a, b), c);
  }
};
struct MadHi {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(high_mul(a, b), c);
  }
};
struct MadHiSat {
  static int32_t apply(int32_t a, int32_t b, int32_t c) { return saturate_32(int64_t{high_mul(a, b)} + c); }
};
struct MadWide {
  template <class T, class W>
  static W apply(T a, T b, W c) {
    return Add::apply(static_cast<W>(MulWide::apply(a, b)), c);
  }
};

/// The low 24 bits of a, extended.
template <class T>
inline int64_t low_24(T a) {
  if constexpr (std::is_signed_v<T>) return static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8;
  return a & 0xFFFFFF;
}
struct Mul24Lo {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(low_24(a) * low_24(b));
  }
};
struct Mul24Hi {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>((low_24(a) * low_24(b)) >> 16);
  }
};
struct Mad24Lo {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Mul24Lo::apply(a, b), c);
  }
};
struct Mad24Hi {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Mul24Hi::apply(a, b), c);
  }
};
struct Mad24HiSat {
  static int32_t apply(int32_t a, int32_t b, int32_t c) { return saturate_32(int64_t{Mul24Hi::apply(a, b)} + c); }
};
struct Sad {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(c, a < b ? Sub::apply(b, a) : Sub::apply(a, b));
  }
};

// Division by zero gives all ones and the dividend, as GPUs do. Up to 32 bits the double quotient, truncated, is exact:
// a non-integral quotient is at least 1/b away from an integer, far more than a double's rounding.
struct Div {
  template <class T>
  static T apply(T a, T b) {
    const T divisor = b == 0 ? T{1} : b;
    T quotient;
    if constexpr (sizeof(T) <= 4) {
      quotient = static_cast<T>(static_cast<int64_t>(static_cast<double>(a) / static_cast<double>(divisor)));
    } else if constexpr (std::is_signed_v<T>) {
      quotient = divisor == -1 ? Sub::apply(T{0}, a) : static_cast<T>(a / divisor);
    } else {
      quotient = a / divisor;
    }
    return b == 0 ? static_cast<T>(~T{0}) : quotient;
  }
};
struct Rem {
  template <class T>
  static T apply(T a, T b) {
    return b == 0 ? a : Sub::apply(a, wrap_mul(Div::apply(a, b), b));
  }
};
struct Neg {
  template <class T>
  static T apply(T a) {
    return Sub::apply(T{0}, a);
  }
};
struct Abs {
  template <class T>
  static T apply(T a) {
    if constexpr (std::is_signed_v<T>) return a < 0 ? Neg::apply(a) : a;
    return a;
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
};
struct MinRelu {
  template <class T>
  static T apply(T a, T b) {
    return Max::apply(Min::apply(a, b), T{0});
  }
};
struct MaxRelu {
  template <class T>
  static T apply(T a, T b) {
    return Max::apply(Max::apply(a, b), T{0});
  }
};

struct And {
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static T apply(T a) {
    return a == 0 ? T{1} : T{0};
  }
};
struct Slct {
  template <class T, class C>
  static T apply(T a, T b, C c) {
    return c >= C{0} ? a : b;
  }
};

// Shift amounts beyond the width clamp.
struct Shl {
  template <class T>
  static T apply(T a, uint32_t n) {
    return n >= width<T> ? T{0} : static_cast<T>(a << (n % width<T>));
  }
};
struct Shr {
  template <class T>
  static T apply(T a, uint32_t n) {
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (n >= width<T> ? width<T> - 1 : n));
    return n >= width<T> ? T{0} : static_cast<T>(a >> (n % width<T>));
  }
};

// Funnel shifts of the 64-bit value b:a.
inline uint64_t funnel(uint32_t a, uint32_t b) {
  return uint64_t{b} << 32 | a;
}
struct ShfLeftClamp {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t n) {
    return static_cast<uint32_t>((funnel(a, b) << (n > 32 ? 32 : n)) >> 32);
  }
};
struct ShfLeftWrap {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t n) {
    return static_cast<uint32_t>((funnel(a, b) << (n & 31)) >> 32);
  }
};
struct ShfRightClamp {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t n) {
    return static_cast<uint32_t>(funnel(a, b) >> (n > 32 ? 32 : n));
  }
};
struct ShfRightWrap {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t n) { return static_cast<uint32_t>(funnel(a, b) >> (n & 31)); }
};

struct Popc {
  template <class T>
  static uint32_t apply(T a) {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <class T>
  static uint32_t apply(T a) {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
struct Bfind {
  template <class T>
  static uint32_t apply(T a) {
    Bits<T> x = static_cast<Bits<T>>(a);
    if constexpr (std::is_signed_v<T>) x = a < 0 ? ~x : x;
    return width<T> - 1 - static_cast<uint32_t>(std::countl_zero(x));  // all ones for 0
  }
};
struct BfindShift {
  template <class T>
  static uint32_t apply(T a) {
    const uint32_t position = Bfind::apply(a);
    return position == ~0u ? position : width<T> - 1 - position;
  }
};
struct Brev {
  template <class T>
  static T apply(T a) {
    constexpr T m1 = static_cast<T>(0x5555555555555555u), m2 = static_cast<T>(0x3333333333333333u);
    constexpr T m4 = static_cast<T>(0x0F0F0F0F0F0F0F0Fu);
    a = static_cast<T>((a >> 1 & m1) | (a & m1) << 1);
    a = static_cast<T>((a >> 2 & m2) | (a & m2) << 2);
    a = static_cast<T>((a >> 4 & m4) | (a & m4) << 4);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(a);
    return __builtin_bswap64(a);
  }
};

/// `length` ones from bit 0; any length.
template <class T>
inline Bits<T> ones(uint32_t length) {
  return length >= width<T> ? static_cast<Bits<T>>(~Bits<T>{0}) : static_cast<Bits<T>>((Bits<T>{1} << length) - 1);
}
struct Bfe {
  template <class T>
  static T apply(T a, uint32_t b, uint32_t c) {
    const uint32_t position = b & 0xFF, length = c & 0xFF;
    const Bits<T> mask = ones<T>(length);
    const Bits<T> field = static_cast<Bits<T>>(Shr::apply(a, position)) & mask;
    if constexpr (!std::is_signed_v<T>) return field;
    const uint32_t top = position + length > width<T> ? width<T> - 1 : position + length - 1;
    const bool sign = length != 0 && (static_cast<Bits<T>>(a) >> (top % width<T>)&1) != 0;
    return static_cast<T>(sign ? field | static_cast<Bits<T>>(~mask) : field);
  }
};
struct Bfi {
  template <class T>
  static T apply(T a, T b, uint32_t c, uint32_t d) {
    const uint32_t position = c & 0xFF, length = d & 0xFF;
    const T mask = Shl::apply(ones<T>(length), position);
    return (b & ~mask) | (Shl::apply(a, position) & mask);
  }
};
struct Fns {
  static uint32_t apply(uint32_t mask, uint32_t base, int32_t offset) {
    if (offset == 0) return base < 32 && (mask >> base & 1) != 0 ? base : ~0u;
    int64_t left = offset > 0 ? offset : -int64_t{offset};
    const int step = offset > 0 ? 1 : -1;
    for (int64_t at = base; at >= 0 && at < 32; at += step) {
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
    }
    return ~0u;
  }
};

template <class T>
inline T extend(T a, uint32_t bits) {
  if (bits == 0) return 0;
  const uint32_t unused = 32 - bits;
  return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << unused) >> unused);
}
struct SzextClamp {
  template <class T>
  static T apply(T a, uint32_t bits) {
    return bits >= 32 ? a : extend(a, bits);
  }
};
struct SzextWrap {
  template <class T>
  static T apply(T a, uint32_t bits) {
    return extend(a, bits & 31);
  }
};
struct BmskWrap {
  static uint32_t apply(uint32_t position, uint32_t length) {
    const uint32_t first = position & 31, end = first + (length & 31);
    return (~0u << first) & ones<uint32_t>(end);
  }
};
struct BmskClamp {
  static uint32_t apply(uint32_t position, uint32_t length) {
    const uint32_t first = position > 32 ? 32 : position, count = length > 32 ? 32 : length;
    return Shl::apply(~0u, first) & ones<uint32_t>(first + count);
  }
};

template <class T>
inline int64_t byte_of(T x, int k) {
  if constexpr (std::is_signed_v<T>) return static_cast<int8_t>(x >> (8 * k));
  return static_cast<uint8_t>(x >> (8 * k));
}
struct Dp4a {
  template <class A, class B>
  static uint32_t apply(A a, B b, uint32_t c) {
    int64_t sum = 0;
    for (int k = 0; k < 4; ++k) sum += byte_of(a, k) * byte_of(b, k);
    return c + static_cast<uint32_t>(sum);
  }
};
template <int first>
struct Dp2a {
  template <class A, class B>
  static uint32_t apply(A a, B b, uint32_t c) {
    const auto half = [&](int k) -> int64_t {
      if constexpr (std::is_signed_v<A>) return static_cast<int16_t>(a >> (16 * k));
      return static_cast<uint16_t>(a >> (16 * k));
    };
    return c + static_cast<uint32_t>(half(0) * byte_of(b, first) + half(1) * byte_of(b, first + 1));
  }
};

/// Byte `k` of the eight bytes b:a.
inline uint32_t pick(uint64_t pair, uint32_t k) {
  return static_cast<uint32_t>(pair >> (8 * (k & 7))) & 0xFF;
}

struct Prmt {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t pair = funnel(a, b);
    uint32_t d = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t selector = c >> (4 * k);
      uint32_t byte = pick(pair, selector);
      const uint32_t sign = (byte & 0x80) != 0 ? 0xFF : 0;
      byte = (selector & 8) != 0 ? sign : byte;
      d |= byte << (8 * k);
    }
    return d;
  }
};
template <class Index>
struct PrmtMode {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t pair = funnel(a, b);
    uint32_t d = 0;
    for (uint32_t k = 0; k < 4; ++k) d |= pick(pair, Index::of(k, c & 3)) << (8 * k);
    return d;
  }
};
// clang-format off
struct Forward4 { static uint32_t of(uint32_t k, uint32_t c) { return c + k; } };
struct Backward4 { static uint32_t of(uint32_t k, uint32_t c) { return c - k; } };
struct Replicate8 { static uint32_t of(uint32_t, uint32_t c) { return c; } };
struct EdgeLeft { static uint32_t of(uint32_t k, uint32_t c) { return k > c ? k : c; } };
struct EdgeRight { static uint32_t of(uint32_t k, uint32_t c) { return k < c ? k : c; } };
struct Replicate16 { static uint32_t of(uint32_t k, uint32_t c) { return (c & 1) * 2 + (k & 1); } };
// clang-format on
using PrmtForward4 = PrmtMode<Forward4>;
using PrmtBackward4 = PrmtMode<Backward4>;
using PrmtReplicate8 = PrmtMode<Replicate8>;
using PrmtEdgeLeft = PrmtMode<EdgeLeft>;
using PrmtEdgeRight = PrmtMode<EdgeRight>;
using PrmtReplicate16 = PrmtMode<Replicate16>;

/// Op on both 16-bit halves of a word.
template <class T, class Op>
struct Packed {
  static uint32_t join(T low, T high) {
    return static_cast<uint16_t>(low) | static_cast<uint32_t>(static_cast<uint16_t>(high)) << 16;
  }
  static uint32_t apply(uint32_t a) { return join(Op::apply(static_cast<T>(a)), Op::apply(static_cast<T>(a >> 16))); }
  static uint32_t apply(uint32_t a, uint32_t b) {
    return join(Op::apply(static_cast<T>(a), static_cast<T>(b)),
                Op::apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  }
};

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
