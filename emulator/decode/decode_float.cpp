// f64, f32, f16 and bf16 arithmetic and the special functions.
#include "decoders.h"

namespace kiln::emulator {
namespace {

using ptx::Type;

InstructionClass arithmetic_class(Type type) {
  switch (type) {
    case Type::f64:
      return InstructionClass::fma_f64;
    case Type::f32:
    case Type::f32x2:
      return InstructionClass::fma_f32;
    default:
      return InstructionClass::fma_f16;
  }
}

std::optional<Rounding> rounding_of(Modifiers& modifiers) {
  if (modifiers.accept("rn")) return Rounding::nearest;
  if (modifiers.accept("rz")) return Rounding::zero;
  if (modifiers.accept("rm")) return Rounding::down;
  if (modifiers.accept("rp")) return Rounding::up;
  return std::nullopt;
}

FloatTraits traits_of(DecodeContext& context) {
  FloatTraits traits;
  traits.rounding = rounding_of(context.modifiers).value_or(Rounding::nearest);
  traits.flush = context.modifiers.accept("ftz");
  traits.saturate = context.modifiers.accept("sat");
  traits.relu = context.modifiers.accept("relu");
  return traits;
}

Operation& emit(DecodeContext& context, FloatOp op, Type type, const FloatTraits& traits, size_t sources,
                InstructionClass counted_as) {
  context.finish(sources + 1);
  RegisterId ids[3] = {};
  for (size_t k = 0; k < sources; ++k) ids[k] = context.read(context.operand(k + 1), type);
  const RegisterId d = context.write(context.operand(0), type);
  Operation& operation = context.emit(context.units().floating(op, type, traits), counted_as);
  operation.d = d;
  operation.a = ids[0];
  operation.b = ids[1];
  operation.c = ids[2];
  operation.immediate = static_cast<int64_t>(traits.rounding);
  return operation;
}

void arithmetic(DecodeContext& context, FloatOp op, size_t sources) {
  const FloatTraits traits = traits_of(context);
  const Type type = context.type();
  Operation& operation = emit(context, op, type, traits, sources, arithmetic_class(type));
  const bool plain = !traits.flush && !traits.saturate && !traits.relu && traits.rounding == Rounding::nearest;
  operation.fusable = op == FloatOp::fma && type == Type::f32 && plain && context.guard() == 0;
}

/// .approx and .full forms are computed as .rn, which is within their error.
void special(DecodeContext& context, FloatOp op, size_t sources, bool may_be_exact) {
  const bool approximate = context.modifiers.accept("approx");
  const FloatTraits traits = traits_of(context);
  if (!approximate && !may_be_exact) context.fail("expected .approx");
  emit(context, op, context.type(), traits, sources, InstructionClass::special);
}

void extreme(DecodeContext& context, bool maximum) {
  const bool flush = context.modifiers.accept("ftz"), nan = context.modifiers.accept("NaN");
  const bool xorsign = context.modifiers.accept("xorsign");
  if (xorsign && !context.modifiers.accept("abs")) context.fail("expected .xorsign.abs");
  const Type type = context.type();
  FloatOp op = maximum ? FloatOp::max : FloatOp::min;
  if (nan) op = maximum ? FloatOp::max_nan : FloatOp::min_nan;
  if (xorsign) op = maximum ? FloatOp::max_xorsign : FloatOp::min_xorsign;
  if (nan && xorsign) op = maximum ? FloatOp::max_nan_xorsign : FloatOp::min_nan_xorsign;
  FloatTraits traits;
  traits.flush = flush;
  if (context.operands() != 4) {
    emit(context, op, type, traits, 2, arithmetic_class(type));
    return;
  }
  // Three sources: the extreme of the first two, then with the third.
  context.finish(4);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId c = context.read(context.operand(3), type), d = context.write(context.operand(0), type);
  const RegisterId partial = context.temporary(class_of(type));
  Operation& first = context.emit(context.units().floating(op, type, traits), InstructionClass::free);
  first.d = partial;
  first.a = a;
  first.b = b;
  Operation& second = context.emit(context.units().floating(op, type, traits), arithmetic_class(type));
  second.d = d;
  second.a = partial;
  second.b = c;
}

void sign_change(DecodeContext& context, FloatOp op) {
  FloatTraits traits;
  traits.flush = context.modifiers.accept("ftz");
  const Type type = context.type();
  emit(context, op, type, traits, 1, arithmetic_class(type));
}

void rcp(DecodeContext& c) {
  special(c, FloatOp::rcp, 1, true);
}
void sqrt(DecodeContext& c) {
  special(c, FloatOp::sqrt, 1, true);
}
void rsqrt(DecodeContext& c) {
  special(c, FloatOp::rsqrt, 1, false);
}
void sin(DecodeContext& c) {
  special(c, FloatOp::sin, 1, false);
}
void cos(DecodeContext& c) {
  special(c, FloatOp::cos, 1, false);
}
void lg2(DecodeContext& c) {
  special(c, FloatOp::lg2, 1, false);
}
void ex2(DecodeContext& c) {
  special(c, FloatOp::ex2, 1, false);
}
void tanh(DecodeContext& c) {
  special(c, FloatOp::tanh, 1, false);
}

void copysign(DecodeContext& context) {
  const Type type = context.type();
  emit(context, FloatOp::copysign, type, FloatTraits{}, 2, arithmetic_class(type));
}

void testp(DecodeContext& context) {
  const auto word = context.modifiers.accept_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (!word) context.fail("expected what to test");
  const TestOp op = *word == "finite"       ? TestOp::finite
                    : *word == "infinite"   ? TestOp::infinite
                    : *word == "number"     ? TestOp::number
                    : *word == "notanumber" ? TestOp::notanumber
                    : *word == "normal"     ? TestOp::normal
                                            : TestOp::subnormal;
  const Type type = context.type();
  context.finish(2);
  const RegisterId a = context.read(context.operand(1), type), d = context.write_predicate(context.operand(0));
  Operation& operation = context.emit(context.units().test(op, type), arithmetic_class(type));
  operation.d = d;
  operation.a = a;
}

constexpr DecoderEntry float_entries[] = {
    {"fma", decode_float_fma},
    {"rcp", rcp},
    {"sqrt", sqrt},
    {"rsqrt", rsqrt},
    {"sin", sin},
    {"cos", cos},
    {"lg2", lg2},
    {"ex2", ex2},
    {"tanh", tanh},
    {"copysign", copysign},
    {"testp", testp},
};

}  // namespace

void decode_float_add(DecodeContext& context) {
  arithmetic(context, FloatOp::add, 2);
}
void decode_float_sub(DecodeContext& context) {
  arithmetic(context, FloatOp::sub, 2);
}
void decode_float_mul(DecodeContext& context) {
  arithmetic(context, FloatOp::mul, 2);
}
void decode_float_fma(DecodeContext& context) {
  arithmetic(context, FloatOp::fma, 3);
}
void decode_float_div(DecodeContext& context) {
  const bool full = context.modifiers.accept("full");
  const bool narrow = !full && context.modifiers.accept("approx");
  special(context, narrow ? FloatOp::div_approx : FloatOp::div, 2, true);
}
void decode_float_min(DecodeContext& context) {
  extreme(context, false);
}
void decode_float_max(DecodeContext& context) {
  extreme(context, true);
}
void decode_float_abs(DecodeContext& context) {
  sign_change(context, FloatOp::abs);
}
void decode_float_neg(DecodeContext& context) {
  sign_change(context, FloatOp::neg);
}

std::span<const DecoderEntry> float_decoders() {
  return float_entries;
}

}  // namespace kiln::emulator
