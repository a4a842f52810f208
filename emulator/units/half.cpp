// f16 and bf16 arithmetic, single and in pairs: computed in wider formats and rounded once.
#include "floating_ops.h"
#include "lanes.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

// Sums, differences and products of two halves round correctly when a float result is rounded again, except products
// of bf16 in the subnormal range; those go through fma_odd with the zero that leaves the product's sign alone.
template <class Format>
struct HalfAdd {
  static float apply(float a, float b) { return a + b; }
};
template <class Format>
struct HalfSub {
  static float apply(float a, float b) { return a - b; }
};
template <class Format>
struct HalfMul {
  static float apply(float a, float b) {
    if constexpr (Format::one == F16::one) return a * b;
    return Format::fma_odd(a, b, -0.0f);
  }
};
template <class Format>
struct HalfFma {
  static float apply(float a, float b, float c) { return Format::fma_odd(a, b, c); }
};
template <class Format>
struct HalfFmaRelu {
  static float apply(float a, float b, float c) {
    const float r = Format::fma_odd(a, b, c);
    return is_nan(r) ? r : FloatExtreme<Extreme{.maximum = true}>::apply(r, 0.0f);
  }
};
template <class Op>
struct Saturated {
  template <class... T>
  static float apply(T... operands) {
    return saturated(Op::apply(operands...));
  }
};

/// The magnitude from which on a result is rounded to the smallest normal number.
template <class Format>
constexpr float rounds_to_normal = Format::one == F16::one ? 0x1p-14f - 0x1p-25f : 0x1p-126f - 0x1p-134f;

template <class Format>
float flushed_below(float x, float bound) {
  return magnitude(x) < bound ? std::bit_cast<float>(sign_bit(x)) : x;
}

/// .ftz on halves flushes what is subnormal in the 16-bit format.
template <class Format, class Op>
struct Flushed {
  template <class... T>
  static float apply(T... operands) {
    const float result = Op::apply(flushed_below<Format>(operands, Format::smallest_normal)...);
    return flushed_below<Format>(result, rounds_to_normal<Format>);
  }
};

/// One handler for 32 halves or 64 (pairs): widen, apply, narrow.
template <class Format, class Op, int operands, bool pair>
const Instruction* map(Warp& warp, const Instruction* i) {
  using Unit = std::conditional_t<pair, uint32_t, uint16_t>;
  constexpr int n = pair ? 64 : 32;
  Result<Unit> result(warp, i->d, guarded(warp, i));
  Row<float, n> a, b, c;
  Format::widen(a.lane, row<uint16_t>(warp, i->a), n);
  if constexpr (operands > 1) Format::widen(b.lane, row<uint16_t>(warp, i->b), n);
  if constexpr (operands > 2) Format::widen(c.lane, row<uint16_t>(warp, i->c), n);
  for (int k = 0; k < n; ++k) {
    if constexpr (operands == 1) a.lane[k] = Op::apply(a.lane[k]);
    if constexpr (operands == 2) a.lane[k] = Op::apply(a.lane[k], b.lane[k]);
    if constexpr (operands == 3) a.lane[k] = Op::apply(a.lane[k], b.lane[k], c.lane[k]);
  }
  Format::narrow(reinterpret_cast<uint16_t*>(result.data()), a.lane, n);
  result.finish();
  return i + 1;
}

/// abs and neg work on the bits: a NaN keeps its payload.
template <uint32_t keep, uint32_t flip>
struct SignBits {
  template <class T>
  static T apply(T a) {
    return static_cast<T>((a & keep) ^ flip);
  }
};

/// The same of operands whose subnormals count as zeros.
template <class Format, class Bits>
struct FlushedBits {
  static uint16_t half(uint16_t a) {
    return Bits::apply(static_cast<uint16_t>((a & Format::exponent) == 0 ? a & 0x8000u : a));
  }
  static uint16_t apply(uint16_t a) { return half(a); }
  static uint32_t apply(uint32_t a) {
    return static_cast<uint32_t>(half(static_cast<uint16_t>(a >> 16))) << 16 | half(static_cast<uint16_t>(a));
  }
};

template <class Format, class Bits>
Handler sign_change(const FloatTraits& traits, bool pair) {
  using Flushing = FlushedBits<Format, Bits>;
  if (pair) return traits.flush ? map1<Flushing, uint32_t, uint32_t> : map1<Bits, uint32_t, uint32_t>;
  return traits.flush ? map1<Flushing, uint16_t, uint16_t> : map1<Bits, uint16_t, uint16_t>;
}

template <class Format, class Op, int operands>
Handler plain(bool pair) {
  return pair ? map<Format, Op, operands, true> : map<Format, Op, operands, false>;
}

template <class Format, class Op, int operands>
Handler shaped(const FloatTraits& traits, bool pair) {
  if (traits.saturate && traits.flush) return plain<Format, Saturated<Flushed<Format, Op>>, operands>(pair);
  if (traits.saturate) return plain<Format, Saturated<Op>, operands>(pair);
  if (traits.flush) return plain<Format, Flushed<Format, Op>, operands>(pair);
  return plain<Format, Op, operands>(pair);
}

template <class Format>
Handler extremes(FloatOp op, bool pair, const FloatTraits& traits) {
  switch (op) {
    case FloatOp::min:
      return shaped<Format, FloatExtreme<Extreme{}>, 2>(traits, pair);
    case FloatOp::max:
      return shaped<Format, FloatExtreme<Extreme{.maximum = true}>, 2>(traits, pair);
    case FloatOp::min_nan:
      return shaped<Format, FloatExtreme<Extreme{.nan = true}>, 2>(traits, pair);
    case FloatOp::max_nan:
      return shaped<Format, FloatExtreme<Extreme{.maximum = true, .nan = true}>, 2>(traits, pair);
    case FloatOp::min_xorsign:
      return shaped<Format, FloatExtreme<Extreme{.xorsign = true}>, 2>(traits, pair);
    case FloatOp::max_xorsign:
      return shaped<Format, FloatExtreme<Extreme{.maximum = true, .xorsign = true}>, 2>(traits, pair);
    case FloatOp::min_nan_xorsign:
      return shaped<Format, FloatExtreme<Extreme{.nan = true, .xorsign = true}>, 2>(traits, pair);
    case FloatOp::max_nan_xorsign:
      return shaped<Format, FloatExtreme<Extreme{.maximum = true, .nan = true, .xorsign = true}>, 2>(traits, pair);
    default:
      return nullptr;
  }
}

template <class Format>
Handler of(FloatOp op, bool pair, const FloatTraits& traits) {
  switch (op) {
    case FloatOp::add:
      return shaped<Format, HalfAdd<Format>, 2>(traits, pair);
    case FloatOp::sub:
      return shaped<Format, HalfSub<Format>, 2>(traits, pair);
    case FloatOp::mul:
      return shaped<Format, HalfMul<Format>, 2>(traits, pair);
    case FloatOp::fma:
      return traits.relu ? shaped<Format, HalfFmaRelu<Format>, 3>(traits, pair)
                         : shaped<Format, HalfFma<Format>, 3>(traits, pair);
    case FloatOp::abs:
      return sign_change<Format, SignBits<0x7FFF7FFFu, 0>>(traits, pair);
    case FloatOp::neg:
      return sign_change<Format, SignBits<0xFFFFFFFFu, 0x80008000u>>(traits, pair);
    case FloatOp::ex2:
      return shaped<Format, Exp2, 1>(traits, pair);
    case FloatOp::tanh:
      return shaped<Format, HyperbolicTangent, 1>(traits, pair);
    default:
      return extremes<Format>(op, pair, traits);
  }
}

}  // namespace

Handler half(FloatOp op, Type type, const FloatTraits& traits) {
  if (traits.relu && op != FloatOp::fma) return nullptr;
  if (traits.rounding != Rounding::nearest && traits.rounding != Rounding::none) return nullptr;
  switch (type) {
    case Type::f16:
      return of<F16>(op, false, traits);
    case Type::f16x2:
      return of<F16>(op, true, traits);
    case Type::bf16:
      return of<BF16>(op, false, traits);
    case Type::bf16x2:
      return of<BF16>(op, true, traits);
    default:
      return nullptr;
  }
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
