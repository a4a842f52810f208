// f32 and f64 arithmetic.
#include "directed.h"
#include "floating_ops.h"
#include "lanes.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

template <class Op, class T, int operands>
const Instruction* map(Warp& warp, const Instruction* i) {
  if constexpr (operands == 1) return map1<Op, T, T>(warp, i);
  if constexpr (operands == 2) return map2<Op, T, T, T>(warp, i);
  if constexpr (operands == 3) return map3<Op, T, T, T, T>(warp, i);
}

/// An operation that honours the rounding mode.
template <class Op, int operands>
Handler rounded(const FloatTraits& traits, Type type) {
  const bool nearest = traits.rounding == Rounding::nearest || traits.rounding == Rounding::none;
  if (type == Type::f64) {
    return nearest ? map<Op, double, operands> : directed<map<Op, double, operands>>;
  }
  const auto shaped = [&]<bool flush, bool saturate>() -> Handler {
    using Shape = Shaped<Op, flush, saturate>;
    return nearest ? map<Shape, float, operands> : directed<map<Shape, float, operands>>;
  };
  if (traits.saturate)
    return traits.flush ? shaped.template operator()<true, true>() : shaped.template operator()<false, true>();
  return traits.flush ? shaped.template operator()<true, false>() : shaped.template operator()<false, false>();
}

template <class Op, int operands>
Handler exact(const FloatTraits& traits, Type type) {
  if (type == Type::f64) return map<Op, double, operands>;
  return traits.flush ? map<Shaped<Op, true, false>, float, operands> : map<Shaped<Op, false, false>, float, operands>;
}

/// Pairs of f32 in 64-bit registers.
template <class Op, int operands>
const Instruction* pair_map(Warp& warp, const Instruction* i) {
  Result<uint64_t> result(warp, i->d, guarded(warp, i));
  float* const d = reinterpret_cast<float*>(result.data());
  const float* const a = row<float>(warp, i->a);
  const float* const b = row<float>(warp, i->b);
  const float* const c = row<float>(warp, i->c);
#pragma GCC ivdep
  for (int k = 0; k < 64; ++k) {
    if constexpr (operands == 3) {
      d[k] = Op::apply(a[k], b[k], c[k]);
    } else {
      d[k] = Op::apply(a[k], b[k]);
    }
  }
  result.finish();
  return i + 1;
}

template <class Op, int operands>
Handler pair_of(const FloatTraits& traits) {
  const auto shaped = [&]<class Shape>() -> Handler {
    return traits.rounding == Rounding::nearest ? pair_map<Shape, operands> : directed<pair_map<Shape, operands>>;
  };
  return traits.flush ? shaped.template operator()<Shaped<Op, true, false>>()
                      : shaped.template operator()<Shaped<Op, false, false>>();
}

Handler pairs(FloatOp op, const FloatTraits& traits) {
  switch (op) {
    case FloatOp::add:
      return pair_of<FloatAdd, 2>(traits);
    case FloatOp::sub:
      return pair_of<FloatSub, 2>(traits);
    case FloatOp::mul:
      return pair_of<FloatMul, 2>(traits);
    case FloatOp::fma:
      return pair_of<FloatFma, 3>(traits);
    default:
      return nullptr;
  }
}

Handler extremes(FloatOp op, Type type, const FloatTraits& traits) {
  switch (op) {
    case FloatOp::min:
      return exact<FloatExtreme<Extreme{}>, 2>(traits, type);
    case FloatOp::max:
      return exact<FloatExtreme<Extreme{.maximum = true}>, 2>(traits, type);
    case FloatOp::min_nan:
      return exact<FloatExtreme<Extreme{.nan = true}>, 2>(traits, type);
    case FloatOp::max_nan:
      return exact<FloatExtreme<Extreme{.maximum = true, .nan = true}>, 2>(traits, type);
    case FloatOp::min_xorsign:
      return exact<FloatExtreme<Extreme{.xorsign = true}>, 2>(traits, type);
    case FloatOp::max_xorsign:
      return exact<FloatExtreme<Extreme{.maximum = true, .xorsign = true}>, 2>(traits, type);
    case FloatOp::min_nan_xorsign:
      return exact<FloatExtreme<Extreme{.nan = true, .xorsign = true}>, 2>(traits, type);
    case FloatOp::max_nan_xorsign:
      return exact<FloatExtreme<Extreme{.maximum = true, .nan = true, .xorsign = true}>, 2>(traits, type);
    default:
      return nullptr;
  }
}

template <class Op, int operands = 1>
Handler special(const FloatTraits& traits) {
  return traits.flush ? map<Shaped<Op, true, false>, float, operands> : map<Shaped<Op, false, false>, float, operands>;
}

template <TestOp test>
struct Test {
  template <class T>
  static bool apply(T x) {
    constexpr T infinity = std::bit_cast<T>(sizeof(T) == 4 ? decltype(bits_of(x)){0x7F800000u}
                                                           : static_cast<decltype(bits_of(x))>(0x7FF0000000000000u));
    constexpr T smallest = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);
    const T a = magnitude(x);
    switch (test) {
      case TestOp::finite:
        return a < infinity;
      case TestOp::infinite:
        return a == infinity;
      case TestOp::number:
        return a <= infinity;
      case TestOp::notanumber:
        return !(a <= infinity);
      case TestOp::normal:
        return a == T{0} || (a >= smallest && a < infinity);  // zeros count as normal, says the ISA
      case TestOp::subnormal:
        return a > T{0} && a < smallest;
    }
    return false;
  }
};

template <TestOp op, class T>
const Instruction* test_row(Warp& warp, const Instruction* i) {
  const T* const a = row<T>(warp, i->a);
  Row<uint8_t> holds;
  for (int lane = 0; lane < 32; ++lane) holds.lane[lane] = Test<op>::apply(a[lane]);
  set_predicate(warp, i->d, pack_bytes(holds.lane), guarded(warp, i));
  return i + 1;
}

template <class T>
Handler test_of(TestOp op) {
  switch (op) {
    case TestOp::finite:
      return test_row<TestOp::finite, T>;
    case TestOp::infinite:
      return test_row<TestOp::infinite, T>;
    case TestOp::number:
      return test_row<TestOp::number, T>;
    case TestOp::notanumber:
      return test_row<TestOp::notanumber, T>;
    case TestOp::normal:
      return test_row<TestOp::normal, T>;
    case TestOp::subnormal:
      return test_row<TestOp::subnormal, T>;
  }
  return nullptr;
}

}  // namespace

Handler floating(FloatOp op, Type type, const FloatTraits& traits) {
  if (type == Type::f32x2) return pairs(op, traits);
  if (type != Type::f32 && type != Type::f64) return half(op, type, traits);
  if (traits.relu || (type == Type::f64 && traits.saturate)) return nullptr;
  switch (op) {
    case FloatOp::add:
      return rounded<FloatAdd, 2>(traits, type);
    case FloatOp::sub:
      return rounded<FloatSub, 2>(traits, type);
    case FloatOp::mul:
      return rounded<FloatMul, 2>(traits, type);
    case FloatOp::fma:
      return rounded<FloatFma, 3>(traits, type);
    case FloatOp::div:
      return rounded<FloatDiv, 2>(traits, type);
    case FloatOp::div_approx:
      return type == Type::f32 ? special<FloatDivApprox, 2>(traits) : nullptr;
    case FloatOp::rcp:
      return rounded<FloatRcp, 1>(traits, type);
    case FloatOp::sqrt:
      return rounded<FloatSqrt, 1>(traits, type);
    case FloatOp::abs:
      return exact<FloatAbs, 1>(traits, type);
    case FloatOp::neg:
      return exact<FloatNeg, 1>(traits, type);
    case FloatOp::copysign:
      return exact<FloatCopysign, 2>(traits, type);
    case FloatOp::rsqrt:
      return exact<FloatRsqrt, 1>(traits, type);
    default:
      break;
  }
  if (type == Type::f32) {
    if (op == FloatOp::ex2) return special<Exp2>(traits);
    if (op == FloatOp::lg2) return special<Log2>(traits);
    if (op == FloatOp::sin) return special<Sine>(traits);
    if (op == FloatOp::cos) return special<Cosine>(traits);
    if (op == FloatOp::tanh) return special<HyperbolicTangent>(traits);
  }
  return extremes(op, type, traits);
}

Handler test(TestOp op, Type type) {
  if (type == Type::f32) return test_of<float>(op);
  if (type == Type::f64) return test_of<double>(op);
  return nullptr;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
