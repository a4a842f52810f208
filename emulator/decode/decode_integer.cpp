// Integer arithmetic, extended precision included.
#include "decoders.h"

namespace kiln::emulator {
namespace {

using ptx::Type;

Operation& emit_integer(DecodeContext& context, IntegerOp op, Type type) {
  return context.emit(context.units().integer(op, type), InstructionClass::integer);
}

void unary(DecodeContext& context, IntegerOp op, Type result, Type type) {
  context.finish(2);
  const RegisterId a = context.read(context.operand(1), type);
  const RegisterId d = context.write(context.operand(0), result);
  Operation& operation = emit_integer(context, op, type);
  operation.d = d;
  operation.a = a;
}

void binary(DecodeContext& context, IntegerOp op, Type type) {
  context.finish(3);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId d = context.write(context.operand(0), type);
  Operation& operation = emit_integer(context, op, type);
  operation.d = d;
  operation.a = a;
  operation.b = b;
}

/// d = op(a, b, c); c and d have the type `result`, a and b `type`.
void ternary(DecodeContext& context, IntegerOp op, Type result, Type type) {
  context.finish(4);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId c = context.read(context.operand(3), result);
  const RegisterId d = context.write(context.operand(0), result);
  Operation& operation = emit_integer(context, op, type);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = c;
}

/// The .cc and carry-in forms. `d`, a, b[, c].
void carrying(DecodeContext& context, CarryOp op, Type type, bool in, bool out) {
  const bool mad = op == CarryOp::mad_lo || op == CarryOp::mad_hi;
  context.finish(mad ? 4 : 3);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId addend = mad ? context.read(context.operand(3), type) : a;
  const RegisterId d = context.write(context.operand(0), type);
  const RegisterId flag = context.carry_flag();
  Operation& operation = context.emit(context.units().carry(op, type), InstructionClass::integer);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = in ? flag : 0;
  operation.list = {{ListEntry::Kind::write, out ? flag : 0}, {ListEntry::Kind::read, addend}};
}

// A sum unless `subtract`; `carry_in` takes the carry of another.
struct Addition {
  bool subtract = false, carry_in = false;
};

void decode_add_sub(DecodeContext& context, Addition addition) {
  const auto [subtract, carry_in] = addition;
  const bool carry_out = context.modifiers.accept("cc");
  const bool saturate = context.modifiers.accept("sat");
  const Type type = context.type();
  if (carry_in || carry_out)
    return carrying(context, subtract ? CarryOp::sub : CarryOp::add, type, carry_in, carry_out);
  IntegerOp op = subtract ? IntegerOp::sub : IntegerOp::add;
  if (saturate) op = subtract ? IntegerOp::sub_sat : IntegerOp::add_sat;
  binary(context, op, type);
}

Type doubled(DecodeContext& context, Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      context.fail("'.wide' needs a type of 16 or 32 bits");
  }
}

void decode_mad(DecodeContext& context, bool carry_in) {
  const bool carry_out = context.modifiers.accept("cc");
  const bool saturate = context.modifiers.accept("sat");
  const auto part = context.modifiers.accept_one({"lo", "hi", "wide"});
  const Type type = context.type();
  if (!part) context.fail("expected .lo, .hi or .wide");
  if (carry_in || carry_out) {
    if (*part == "wide") context.fail("'.wide' has no carry");
    return carrying(context, *part == "hi" ? CarryOp::mad_hi : CarryOp::mad_lo, type, carry_in, carry_out);
  }
  if (*part == "wide") return ternary(context, IntegerOp::mad_wide, doubled(context, type), type);
  if (saturate && *part != "hi") context.fail("'.sat' needs '.hi'");
  ternary(context,
          saturate        ? IntegerOp::mad_hi_sat
          : *part == "hi" ? IntegerOp::mad_hi
                          : IntegerOp::mad_lo,
          type, type);
}

void decode_mul(DecodeContext& context) {
  const auto part = context.modifiers.accept_one({"lo", "hi", "wide"});
  const Type type = context.type();
  if (!part) context.fail("expected .lo, .hi or .wide");
  if (*part != "wide") return binary(context, *part == "hi" ? IntegerOp::mul_hi : IntegerOp::mul_lo, type);
  context.finish(3);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId d = context.write(context.operand(0), doubled(context, type));
  Operation& operation = emit_integer(context, IntegerOp::mul_wide, type);
  operation.d = d;
  operation.a = a;
  operation.b = b;
}

void decode_mul24(DecodeContext& context) {
  const bool high = context.modifiers.accept("hi");
  if (!high && !context.modifiers.accept("lo")) context.fail("expected .lo or .hi");
  binary(context, high ? IntegerOp::mul24_hi : IntegerOp::mul24_lo, context.type());
}

void decode_mad24(DecodeContext& context) {
  const bool high = context.modifiers.accept("hi"), saturate = context.modifiers.accept("sat");
  if (!high && (saturate || !context.modifiers.accept("lo"))) context.fail("expected .lo, .hi or .hi.sat");
  const Type type = context.type();
  ternary(context, saturate ? IntegerOp::mad24_hi_sat : high ? IntegerOp::mad24_hi : IntegerOp::mad24_lo, type, type);
}

void decode_min_max(DecodeContext& context, IntegerOp plain, IntegerOp relu) {
  const bool clamp = context.modifiers.accept("relu");
  binary(context, clamp ? relu : plain, context.type());
}

void decode_dot(DecodeContext& context, IntegerOp op) {
  const Type a_type = context.type(), b_type = context.type();
  const Type result = is_signed(a_type) || is_signed(b_type) ? Type::s32 : Type::u32;
  context.finish(4);
  const RegisterId a = context.read(context.operand(1), a_type), b = context.read(context.operand(2), b_type);
  const RegisterId c = context.read(context.operand(3), result), d = context.write(context.operand(0), result);
  Operation& operation = emit_integer(context, op, a_type);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = c;
  operation.immediate = is_signed(b_type) ? 1 : 0;
}

void decode_sad(DecodeContext& context) {
  const Type type = context.type();
  ternary(context, IntegerOp::sad, type, type);
}

bool floating(const DecodeContext& context) {
  const auto& words = context.instruction().modifiers;
  const auto type = words.empty() ? std::nullopt : ptx::type_from(words.back());
  return type && is_floating(*type);
}

void divide(DecodeContext& context, IntegerOp op) {
  const Type type = context.type();
  context.finish(3);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId d = context.write(context.operand(0), type);
  Operation& operation = context.emit(context.units().integer(op, type), InstructionClass::special);
  operation.d = d;
  operation.a = a;
  operation.b = b;
}

// Opcodes that integers and floating-point numbers share go by the type, which stands last.
void add(DecodeContext& c) {
  floating(c) ? decode_float_add(c) : decode_add_sub(c, {});
}
void sub(DecodeContext& c) {
  floating(c) ? decode_float_sub(c) : decode_add_sub(c, {.subtract = true});
}
void addc(DecodeContext& c) {
  decode_add_sub(c, {.carry_in = true});
}
void subc(DecodeContext& c) {
  decode_add_sub(c, {.subtract = true, .carry_in = true});
}
void mul(DecodeContext& c) {
  floating(c) ? decode_float_mul(c) : decode_mul(c);
}
void mad(DecodeContext& c) {
  floating(c) ? decode_float_fma(c) : decode_mad(c, false);
}
void madc(DecodeContext& c) {
  decode_mad(c, true);
}
void div(DecodeContext& c) {
  floating(c) ? decode_float_div(c) : divide(c, IntegerOp::div);
}
void rem(DecodeContext& c) {
  divide(c, IntegerOp::rem);
}
void min(DecodeContext& c) {
  floating(c) ? decode_float_min(c) : decode_min_max(c, IntegerOp::min, IntegerOp::min_relu);
}
void max(DecodeContext& c) {
  floating(c) ? decode_float_max(c) : decode_min_max(c, IntegerOp::max, IntegerOp::max_relu);
}

void sign(DecodeContext& context, IntegerOp op) {
  const Type type = context.type();
  unary(context, op, type, type);
}
void abs(DecodeContext& c) {
  floating(c) ? decode_float_abs(c) : sign(c, IntegerOp::abs);
}
void neg(DecodeContext& c) {
  floating(c) ? decode_float_neg(c) : sign(c, IntegerOp::neg);
}
void dp4a(DecodeContext& c) {
  decode_dot(c, IntegerOp::dp4a);
}
void dp2a(DecodeContext& c) {
  const bool high = c.modifiers.accept("hi");
  if (!high && !c.modifiers.accept("lo")) c.fail("expected .lo or .hi");
  decode_dot(c, high ? IntegerOp::dp2a_hi : IntegerOp::dp2a_lo);
}

constexpr DecoderEntry integer_entries[] = {
    {"add", add},
    {"sub", sub},
    {"addc", addc},
    {"subc", subc},
    {"mul", mul},
    {"mad", mad},
    {"madc", madc},
    {"mul24", decode_mul24},
    {"mad24", decode_mad24},
    {"div", div},
    {"rem", rem},
    {"min", min},
    {"max", max},
    {"abs", abs},
    {"neg", neg},
    {"sad", decode_sad},
    {"dp4a", dp4a},
    {"dp2a", dp2a},
};

}  // namespace

std::span<const DecoderEntry> integer_decoders() {
  return integer_entries;
}

}  // namespace kiln::emulator
