// Single precision, conversions, and the moves that use the pipe of half precision.
#include <algorithm>
#include <bit>
#include <cmath>

#include "lanes.h"
#include "machine.h"
#include "predicates.h"

namespace kiln::timing {
namespace {

uint32_t special_function(Function function, float x) {
  switch (function) {
    case Function::rcp:
      return std::bit_cast<uint32_t>(1.0F / x);
    case Function::rsq:
      return std::bit_cast<uint32_t>(1.0F / std::sqrt(x));
    case Function::sqrt:
      return std::bit_cast<uint32_t>(std::sqrt(x));
    case Function::ex2:
      return std::bit_cast<uint32_t>(std::exp2(x));
    case Function::lg2:
      return std::bit_cast<uint32_t>(std::log2(x));
    case Function::sin:
      return std::bit_cast<uint32_t>(std::sin(x));
    default:
      return std::bit_cast<uint32_t>(std::cos(x));
  }
}

uint32_t from_integer_bits(const Decoded& decoded, uint32_t bits) {
  const double value =
      decoded.is_unsigned ? static_cast<double>(bits) : static_cast<double>(static_cast<int32_t>(bits));
  auto rounded = static_cast<float>(value);
  if (decoded.rounding == Rounding::up && static_cast<double>(rounded) < value) {
    rounded = std::nextafter(rounded, INFINITY);
  }
  return std::bit_cast<uint32_t>(rounded);
}

double rounded(Rounding rounding, float x) {
  switch (rounding) {
    case Rounding::truncated:
      return std::trunc(x);
    case Rounding::down:
      return std::floor(x);
    case Rounding::up:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}

uint32_t to_integer(const Decoded& decoded, float x) {
  if (std::isnan(x)) return 0;
  const double whole = rounded(decoded.rounding, x);
  if (decoded.is_unsigned) return static_cast<uint32_t>(std::clamp(whole, 0.0, 4294967295.0));
  return static_cast<uint32_t>(static_cast<int32_t>(std::clamp(whole, -2147483648.0, 2147483647.0)));
}

}  // namespace

// I2F and F2I of 64-bit integers, as the division of such needs them.
void Interpreter::Machine::convert_pairs(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                         uint32_t active) {
  const Operand& from = source(instruction, decoded, 0);
  const Lanes low = fetch(warp, from, decoded.op == Op::f2i);
  Lanes upper;
  if (decoded.op == Op::i2f) {
    upper = fetch_high(warp, from);
    const bool up = decoded.rounding == Rounding::up;
    const Lanes result = each(low.unknown | upper.unknown, [&](uint32_t lane) {
      const uint64_t value = pair(low, upper, lane);
      const bool negative = !decoded.is_unsigned && static_cast<int64_t>(value) < 0;
      float rounded = negative ? static_cast<float>(static_cast<int64_t>(value)) : static_cast<float>(value);
      if (up && !negative && static_cast<double>(rounded) < static_cast<double>(value)) {
        rounded = std::nextafter(rounded, INFINITY);
      }
      return std::bit_cast<uint32_t>(rounded);
    });
    return put(warp, destination(instruction, decoded), result, active);
  }
  const Lanes result = each(low.unknown, [&](uint32_t lane) {
    const double whole = std::trunc(as_float(low.v[lane]));
    const uint64_t value = std::isnan(whole)     ? 0
                           : decoded.is_unsigned ? static_cast<uint64_t>(std::clamp(whole, 0.0, 18446744073709549568.0))
                                                 : static_cast<uint64_t>(static_cast<int64_t>(std::clamp(
                                                       whole, -9223372036854775808.0, 9223372036854774784.0)));
    upper.v[lane] = static_cast<uint32_t>(value >> 32);
    return static_cast<uint32_t>(value);
  });
  upper.unknown = result.unknown;
  put(warp, destination(instruction, decoded), result, active);
  put(warp, destination(instruction, decoded), upper, active, 1);
}

void Interpreter::Machine::floating(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                    uint32_t active) {
  const bool nothing_known = std::any_of(decoded.registers.begin(), decoded.registers.end(), [&](uint16_t index) {
    return (~warp.registers[index].unknown & active) == 0;
  });
  if (nothing_known && !decoded.wide_type) return forget(warp, decoded, instruction, active);
  const bool from_integer = decoded.op == Op::i2f;
  Lanes in[3];
  uint32_t unknown = 0;
  for (size_t i = 0; i < 3 && i < decoded.sources.size(); ++i) {
    const Operand& operand = source(instruction, decoded, i);
    in[i] = fetch(warp, operand, !from_integer);
    unknown |= operand.suffix.empty() ? in[i].unknown : all_lanes;  // .H0, .B1: parts of registers
  }
  if (decoded.wide_type && (decoded.op == Op::i2f || decoded.op == Op::f2i)) {
    return convert_pairs(warp, decoded, instruction, active);
  }
  if (decoded.other_width && (decoded.op == Op::i2f || decoded.op == Op::f2i || decoded.op == Op::mufu)) {
    return forget(warp, decoded, instruction, active);
  }
  const Lanes result = each(unknown | ~active, [&](uint32_t lane) -> uint32_t {
    const float a = as_float(in[0].v[lane]), b = as_float(in[1].v[lane]), c = as_float(in[2].v[lane]);
    switch (decoded.op) {
      case Op::fadd:
        return std::bit_cast<uint32_t>(a + b);
      case Op::fmul:
        return std::bit_cast<uint32_t>(a * b);
      case Op::ffma:
        return std::bit_cast<uint32_t>(std::fma(a, b, c));
      case Op::i2f:
        return from_integer_bits(decoded, in[0].v[lane]);
      case Op::f2i:
        return to_integer(decoded, a);
      default:
        return special_function(decoded.function, a);
    }
  });
  put(warp, destination(instruction, decoded), result, active);
}

namespace {

float float_of_half(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = (bits >> 15 & 1) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), static_cast<int>(exponent) - 25);
}

}  // namespace

// The halves of registers and constants; what immediates hold, the text does not say.
void Interpreter::Machine::compare_halves(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                          uint32_t active) {
  const Operand *const left = &source(instruction, decoded, 0), *const right = &source(instruction, decoded, 1);
  const auto is_read = [](const Operand& operand) { return operand.kind != Operand::Kind::immediate; };
  const bool other_type = instruction.has("BF16") || instruction.has("BF16_V2");
  if (!is_read(*left) || !is_read(*right) || other_type) return forget(warp, decoded, instruction, active);
  const Lanes a = fetch_plain(warp, *left), b = fetch_plain(warp, *right);
  const auto value = [](const Operand& operand, uint32_t word, size_t which) {
    const bool upper = operand.suffix == "H0_H0" ? false : operand.suffix == "H1_H1" ? true : which == 1;
    const float plain = float_of_half(upper ? word >> 16 : word & 0xffff);
    const float size = operand.absolute ? std::fabs(plain) : plain;
    return operand.negated ? -size : size;
  };
  const Bits other = decoded.predicates.empty() ? Bits{all_lanes, 0}
                                                : fetch_predicate(warp, instruction.operands[decoded.predicates[0]]);
  for (size_t which = 0; which < decoded.out_predicates.size(); ++which) {
    Bits result{0, a.unknown | b.unknown};
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const float x = value(*left, a.v[lane], which), y = value(*right, b.v[lane], which);
      const bool is_number = !std::isnan(x) && !std::isnan(y);
      if (is_number ? ordered(decoded.compare, x < y, x == y) : decoded.unordered) result.value |= uint32_t{1} << lane;
    }
    put_predicate(warp, instruction.operands[decoded.out_predicates[which]], combined(decoded.combine, result, other),
                  active);
  }
}

// HFMA2 R, -RZ, RZ, 0, 4: how the compiler moves a constant through an idle pipe.
void Interpreter::Machine::half(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  const auto zero = [&](size_t i) {
    const Operand& operand = source(instruction, decoded, i);
    return operand.kind == Operand::Kind::reg && operand.index == zero_register;
  };
  if (decoded.sources.size() < 3 || !zero(0) || !zero(1) ||
      source(instruction, decoded, 2).kind != Operand::Kind::immediate) {
    return forget(warp, decoded, instruction, active);
  }
  Lanes moved;
  moved.v.fill(static_cast<uint32_t>(instruction.low >> 32));
  put(warp, destination(instruction, decoded), moved, active);
}

}  // namespace kiln::timing
