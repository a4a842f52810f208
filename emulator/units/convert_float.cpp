#include "convert_float.h"

#include "directed.h"
#include "floating_ops.h"
#include "lanes.h"
#include "small_floats.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

/// Steps between reading the source and rounding to the destination's format; packed into the immediate.
enum Step : int64_t {
  rounding_bits = 7,
  to_integral = 8,
  flush_input = 16,
  flush_output = 32,
  saturate_unit = 64,
  clamp_negative = 128,
  clamp_finite = 256,
};

double integral(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero:
      return __builtin_trunc(x);
    case Rounding::down:
      return __builtin_floor(x);
    case Rounding::up:
      return __builtin_ceil(x);
    default:
      return __builtin_rint(x);
  }
}

double prepared(double x, int64_t steps) {
  const auto rounding = static_cast<Rounding>(steps & rounding_bits);
  if ((steps & flush_input) != 0 && magnitude(x) < 0x1p-126) x = std::copysign(0.0, x);
  if ((steps & to_integral) != 0) x = integral(x, rounding);
  if ((steps & saturate_unit) != 0) x = saturated(x);
  if ((steps & clamp_negative) != 0 && x <= 0) x = 0.0;  // -0, too
  return x;
}

// Readers and writers of one lane.
struct ReadF32 {
  using Stored = float;
  static double read(float x) { return x; }
};
struct ReadF64 {
  using Stored = double;
  static double read(double x) { return x; }
};
template <class Format>
struct ReadHalf {
  using Stored = uint16_t;
  static double read(uint16_t x) { return widened<Format>(x); }
};

struct WriteF32 {
  using Stored = float;
  static float write(double x, Rounding rounding) {
    if (is_nan(x)) return quiet_nan<float>();
    const float near = static_cast<float>(x);
    const double back = near;
    const bool negative = std::signbit(x);
    const bool away = negative ? back < x : back > x, short_of = negative ? back > x : back < x;
    const bool shrink = away && (rounding == Rounding::zero || (rounding == Rounding::down && !negative) ||
                                 (rounding == Rounding::up && negative));
    const bool grow = short_of && ((rounding == Rounding::down && negative) || (rounding == Rounding::up && !negative));
    return float_of(bits_of(near) - (shrink ? 1 : 0) + (grow ? 1 : 0));
  }
};
struct WriteF64 {
  using Stored = double;
  static double write(double x, Rounding) { return x; }
};
template <class Format>
struct WriteHalf {
  using Stored = uint16_t;
  static uint16_t write(double x, Rounding rounding) { return narrowed<Format>(x, rounding); }
};

/// Any format to any, any rounding: one lane after the other.
template <class Reader, class Writer>
const Instruction* general(Warp& warp, const Instruction* i) {
  Result<typename Writer::Stored> result(warp, i->d, guarded(warp, i));
  auto* const d = result.data();
  const auto* const a = row<typename Reader::Stored>(warp, i->a);
  const auto rounding = static_cast<Rounding>(i->immediate & rounding_bits);
  for (int lane = 0; lane < 32; ++lane) {
    d[lane] = Writer::write(prepared(Reader::read(a[lane]), i->immediate), rounding);
  }
  if constexpr (sizeof(*d) == 4) {
    if ((i->immediate & flush_output) != 0) {
      for (int lane = 0; lane < 32; ++lane) d[lane] = flushed(d[lane]);
    }
  }
  result.finish();
  return i + 1;
}

template <class Reader>
Handler general_from(Type to) {
  switch (to) {
    case Type::f16:
      return general<Reader, WriteHalf<F16>>;
    case Type::bf16:
      return general<Reader, WriteHalf<BF16>>;
    case Type::f32:
      return general<Reader, WriteF32>;
    case Type::f64:
      return general<Reader, WriteF64>;
    default:
      return nullptr;
  }
}

Handler general_for(const Conversion& c) {
  switch (c.from) {
    case Type::f16:
      return general_from<ReadHalf<F16>>(c.to);
    case Type::bf16:
      return general_from<ReadHalf<BF16>>(c.to);
    case Type::f32:
      return general_from<ReadF32>(c.to);
    case Type::f64:
      return general_from<ReadF64>(c.to);
    default:
      return nullptr;
  }
}

// The conversions that kernels are full of.
template <class Format>
const Instruction* widen(Warp& warp, const Instruction* i) {
  Result<float> result(warp, i->d, guarded(warp, i));
  Format::widen(result.data(), row<uint16_t>(warp, i->a), 32);
  result.finish();
  return i + 1;
}

template <class Format>
const Instruction* narrow(Warp& warp, const Instruction* i) {
  Result<uint16_t> result(warp, i->d, guarded(warp, i));
  Format::narrow(result.data(), row<float>(warp, i->a), 32);
  result.finish();
  return i + 1;
}

struct WidenDouble {
  static double apply(float x) { return x; }
};
struct NarrowDouble {
  static float apply(double x) { return static_cast<float>(x); }
};

bool is_plain(const Conversion& c) {
  return !c.to_integer && !c.flush && !c.saturate && !c.relu && !c.satfinite &&
         (c.rounding == Rounding::nearest || c.rounding == Rounding::none);
}

Handler plain(const Conversion& c) {
  if (c.from == Type::f16 && c.to == Type::f32) return widen<F16>;
  if (c.from == Type::bf16 && c.to == Type::f32) return widen<BF16>;
  if (c.from == Type::f32 && c.to == Type::f16) return narrow<F16>;
  if (c.from == Type::f32 && c.to == Type::bf16) return narrow<BF16>;
  if (c.from == Type::f32 && c.to == Type::f64) return map1<WidenDouble, double, float>;
  if (c.from == Type::f64 && c.to == Type::f32) return map1<NarrowDouble, float, double>;
  return nullptr;
}

/// d = { upper: a, lower: b }, two f32 to a pair of halves.
template <class Format>
const Instruction* narrow_pair(Warp& warp, const Instruction* i) {
  Result<uint32_t> result(warp, i->d, guarded(warp, i));
  const auto rounding = static_cast<Rounding>(i->immediate & rounding_bits);
  const bool plain_nearest = i->immediate == static_cast<int64_t>(Rounding::nearest);
  Row<uint16_t> half[2];
  const float* const source[2] = {row<float>(warp, i->b), row<float>(warp, i->a)};
  for (int k = 0; k < 2; ++k) {
    if (plain_nearest) {
      Format::narrow(half[k].lane, source[k], 32);
      continue;
    }
    for (int lane = 0; lane < 32; ++lane) {
      uint16_t h = narrowed<Format>(prepared(source[k][lane], i->immediate), rounding);
      constexpr uint16_t infinity = Format::one == F16::one ? 0x7C00 : 0x7F80;
      if ((i->immediate & clamp_finite) != 0 && (h & 0x7FFF) == infinity) --h;
      half[k].lane[lane] = h;
    }
  }
  uint32_t* const d = result.data();
  for (int lane = 0; lane < 32; ++lane) d[lane] = half[0].lane[lane] | static_cast<uint32_t>(half[1].lane[lane]) << 16;
  result.finish();
  return i + 1;
}

/// tf32 keeps ten bits of fraction in a 32-bit register.
const Instruction* to_tf32(Warp& warp, const Instruction* i) {
  Result<uint32_t> result(warp, i->d, guarded(warp, i));
  const float* const a = row<float>(warp, i->a);
  const auto rounding = static_cast<Rounding>(i->immediate & rounding_bits);
  for (int lane = 0; lane < 32; ++lane) {
    const float x = static_cast<float>(prepared(a[lane], i->immediate & ~int64_t{to_integral | rounding_bits}));
    const uint32_t bits = bits_of(x);
    uint32_t rounded = bits;
    if (rounding == Rounding::away) rounded += 0x1000;
    if (rounding == Rounding::nearest) rounded += 0xFFF + (bits >> 13 & 1);
    rounded &= 0xFFFFE000u;
    if ((i->immediate & clamp_finite) != 0 && (rounded & 0x7FFFFFFF) == 0x7F800000u) rounded -= 0x2000;
    result.data()[lane] = is_nan(x) ? canonical_nan : rounded;
  }
  result.finish();
  return i + 1;
}

/// d = { upper byte: a, lower byte: b }, two f32 to a pair of 8-bit floats. Out of range gives the largest finite.
template <class Format>
const Instruction* narrow_bytes(Warp& warp, const Instruction* i) {
  Result<uint16_t> result(warp, i->d, guarded(warp, i));
  const float* const a = row<float>(warp, i->a);
  const float* const b = row<float>(warp, i->b);
  const bool relu = (i->immediate & clamp_negative) != 0;
  for (int lane = 0; lane < 32; ++lane) {
    result.data()[lane] =
        static_cast<uint16_t>(small_from_float<Format>(a[lane], relu) << 8 | small_from_float<Format>(b[lane], relu));
  }
  result.finish();
  return i + 1;
}

template <class Format>
const Instruction* narrow_half_pair(Warp& warp, const Instruction* i) {
  Result<uint16_t> result(warp, i->d, guarded(warp, i));
  const uint32_t* const a = row<uint32_t>(warp, i->a);
  const bool relu = (i->immediate & clamp_negative) != 0;
  for (int lane = 0; lane < 32; ++lane) {
    const float high = half_to_float(static_cast<uint16_t>(a[lane] >> 16));
    const float low = half_to_float(static_cast<uint16_t>(a[lane]));
    result.data()[lane] =
        static_cast<uint16_t>(small_from_float<Format>(high, relu) << 8 | small_from_float<Format>(low, relu));
  }
  result.finish();
  return i + 1;
}

template <class Format>
const Instruction* widen_bytes(Warp& warp, const Instruction* i) {
  Result<uint32_t> result(warp, i->d, guarded(warp, i));
  const uint16_t* const a = row<uint16_t>(warp, i->a);
  const bool relu = (i->immediate & clamp_negative) != 0;
  for (int lane = 0; lane < 32; ++lane) {
    float high = float_from_small<Format>(static_cast<uint8_t>(a[lane] >> 8));
    float low = float_from_small<Format>(static_cast<uint8_t>(a[lane]));
    if (relu) high = high < 0 ? 0.0f : high, low = low < 0 ? 0.0f : low;
    result.data()[lane] = static_cast<uint32_t>(float_to_half(high)) << 16 | float_to_half(low);
  }
  result.finish();
  return i + 1;
}

template <class Format>
Handler bytes_from(Type from) {
  if (from == Type::f32) return narrow_bytes<Format>;
  if (from == Type::f16x2) return narrow_half_pair<Format>;
  return nullptr;
}

}  // namespace

int64_t conversion_steps(const Conversion& c) {
  int64_t steps = static_cast<int64_t>(c.rounding);
  if (c.to_integer) steps |= to_integral;
  if (c.flush && c.from == Type::f32) steps |= flush_input;
  if (c.flush && c.to == Type::f32) steps |= flush_output;
  if (c.saturate) steps |= saturate_unit;
  if (c.relu) steps |= clamp_negative;
  if (c.satfinite) steps |= clamp_finite;
  return steps;
}

Handler convert_float(const Conversion& c) {
  switch (c.to) {
    case Type::f16x2:
      if (c.from == Type::f32) return narrow_pair<F16>;
      if (c.from == Type::e4m3x2) return widen_bytes<E4M3>;
      if (c.from == Type::e5m2x2) return widen_bytes<E5M2>;
      return nullptr;
    case Type::bf16x2:
      return c.from == Type::f32 ? narrow_pair<BF16> : nullptr;
    case Type::tf32:
      return c.from == Type::f32 ? to_tf32 : nullptr;
    case Type::e4m3x2:
      return bytes_from<E4M3>(c.from);
    case Type::e5m2x2:
      return bytes_from<E5M2>(c.from);
    default:
      break;
  }
  if (is_plain(c)) {
    if (const Handler handler = plain(c)) return handler;
  }
  return general_for(c);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
