// setp, set, selp and slct.
#include <array>

#include "decoders.h"

namespace kiln::emulator {
namespace {

using ptx::Type;

constexpr std::array<std::pair<std::string_view, Compare>, 18> comparisons = {{
    {"eq", Compare::eq},
    {"ne", Compare::ne},
    {"lt", Compare::lt},
    {"le", Compare::le},
    {"gt", Compare::gt},
    {"ge", Compare::ge},
    {"lo", Compare::lo},
    {"ls", Compare::ls},
    {"hi", Compare::hi},
    {"hs", Compare::hs},
    {"equ", Compare::equ},
    {"neu", Compare::neu},
    {"ltu", Compare::ltu},
    {"leu", Compare::leu},
    {"gtu", Compare::gtu},
    {"geu", Compare::geu},
    {"num", Compare::num},
    {"nan", Compare::nan},
}};

Compare comparison(DecodeContext& context) {
  for (const auto& [word, compare] : comparisons) {
    if (context.modifiers.accept(word)) return compare;
  }
  context.fail("expected a comparison (.eq, .lt, ...)");
}

int64_t join(DecodeContext& context) {
  const auto word = context.modifiers.accept_one({"and", "or", "xor"});
  if (!word) return join_none;
  return *word == "and" ? join_and : *word == "or" ? join_or : join_xor;
}

/// The comparison's operands from `first` on, and the predicate that joins.
struct Sources {
  RegisterId a = 0, b = 0, c = 0;
  int64_t how = join_none;
};

Sources sources(DecodeContext& context, Type type, int64_t how, size_t first) {
  context.finish(first + (how == join_none ? 2 : 3));
  Sources result{context.read(context.operand(first), type), context.read(context.operand(first + 1), type), 0, how};
  if (how != join_none) {
    bool negated = false;
    result.c = context.read_predicate(context.operand(first + 2), negated);
    if (negated) result.how |= join_negate;
  }
  return result;
}

InstructionClass class_for(Type type) {
  if (!is_floating(type)) return InstructionClass::integer;
  return type == Type::f64   ? InstructionClass::fma_f64
         : type == Type::f32 ? InstructionClass::fma_f32
                             : InstructionClass::fma_f16;
}

// setp.CmpOp[.BoolOp].type p[|q], a, b[, [!]c]
void setp(DecodeContext& context) {
  const Compare compare = comparison(context);
  const int64_t how = join(context);
  const bool flush = context.modifiers.accept("ftz");
  const Type type = context.type();
  const Sources from = sources(context, type, how, 1);
  const ptx::Operand& to = context.operand(0);
  const bool pair = to.kind == ptx::Operand::Kind::pair;
  const RegisterId p = context.write_predicate(pair ? to.elements[0] : to);
  const RegisterId q = pair ? context.write_predicate(to.elements[1]) : 0;
  Operation& operation = context.emit(context.units().compare(compare, type, flush), class_for(type));
  operation.d = p;
  operation.a = from.a;
  operation.b = from.b;
  operation.c = from.c;
  operation.immediate = from.how;
  operation.list = {{ListEntry::Kind::write, q}};
}

uint64_t truth(DecodeContext& context, Type result) {
  switch (result) {
    case Type::f32:
      return 0x3F800000u;
    case Type::f16:
      return 0x3C00u;
    case Type::bf16:
      return 0x3F80u;
    case Type::f16x2:
      return 0x3C003C00u;
    case Type::bf16x2:
      return 0x3F803F80u;
    case Type::u16:
    case Type::s16:
      return 0xFFFFu;
    case Type::u32:
    case Type::s32:
      return 0xFFFFFFFFu;
    default:
      context.fail("the result's type is not known here");
  }
}

// set.CmpOp[.BoolOp].dtype.stype d, a, b[, [!]c]
void set(DecodeContext& context) {
  const Compare compare = comparison(context);
  const int64_t how = join(context);
  const bool flush = context.modifiers.accept("ftz");
  const Type result = context.type(), type = context.type();
  const Sources from = sources(context, type, how, 1);
  const uint64_t yes = truth(context, result);
  const RegisterId d = context.write(context.operand(0), result);
  if (type == Type::f16x2 || type == Type::bf16x2) {
    Operation& operation = context.emit(context.units().set_pair(compare, type, flush), class_for(type));
    operation.d = d;
    operation.a = from.a;
    operation.b = from.b;
    operation.c = from.c;
    operation.immediate = from.how | static_cast<int64_t>(yes << join_true_at);
    return;
  }
  const RegisterId outcome = context.temporary(RegisterClass::predicate);
  const RegisterClass width = class_of(result);
  const RegisterId one = context.constant(yes, width), zero = context.constant(0, width);
  Operation& test = context.emit(context.units().compare(compare, type, flush), class_for(type));
  test.d = outcome;
  test.a = from.a;
  test.b = from.b;
  test.c = from.c;
  test.immediate = from.how;
  test.list = {{ListEntry::Kind::write, 0}};
  Operation& choose =
      context.emit(context.units().integer(IntegerOp::select, bits_type(width)), InstructionClass::free);
  choose.d = d;
  choose.a = one;
  choose.b = zero;
  choose.c = outcome;
}

void selp(DecodeContext& context) {
  const Type type = context.type();
  context.finish(4);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  bool negated = false;
  const RegisterId c = context.read_predicate(context.operand(3), negated);
  const RegisterId d = context.write(context.operand(0), type);
  const Type bits = bits_type(class_of(type));
  Operation& operation = context.emit(context.units().integer(IntegerOp::select, bits), InstructionClass::integer);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = c;
  operation.immediate = negated ? 1 : 0;
}

// slct[.ftz].dtype.{s32,f32} d, a, b, c
void slct(DecodeContext& context) {
  const bool flush = context.modifiers.accept("ftz");
  const Type type = context.type(), selector = context.type();
  context.finish(4);
  if (selector != Type::s32 && selector != Type::f32) context.fail("slct selects by .s32 or .f32");
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  RegisterId c = context.read(context.operand(3), selector);
  const RegisterId d = context.write(context.operand(0), type);
  if (flush && selector == Type::f32) {  // a negative subnormal becomes -0, which is not below 0
    const RegisterId flushed = context.temporary(RegisterClass::b32);
    const FloatTraits traits{.flush = true};
    Operation& flushing =
        context.emit(context.units().floating(FloatOp::mul, selector, traits), InstructionClass::free);
    flushing.d = flushed;
    flushing.a = c;
    flushing.b = context.constant(0x3F800000u, RegisterClass::b32);
    c = flushed;
  }
  const IntegerOp op = selector == Type::f32 ? IntegerOp::slct_f32 : IntegerOp::slct;
  Operation& operation =
      context.emit(context.units().integer(op, bits_type(class_of(type))), InstructionClass::integer);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = c;
}

constexpr DecoderEntry compare_entries[] = {{"setp", setp}, {"set", set}, {"selp", selp}, {"slct", slct}};

}  // namespace

std::span<const DecoderEntry> compare_decoders() {
  return compare_entries;
}

}  // namespace kiln::emulator
