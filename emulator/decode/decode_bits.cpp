// Logic, shifts, bit fields and permutations.
#include "decoders.h"

namespace kiln::emulator {
namespace {

using ptx::Type;

/// d = op(a, ...): the types of the sources, in order.
void emit(DecodeContext& context, IntegerOp op, Type type, Type result, std::initializer_list<Type> sources,
          int64_t immediate = 0) {
  context.finish(sources.size() + 1);
  RegisterId ids[3] = {};
  size_t k = 0;
  for (const Type source : sources) {
    ids[k] = context.read(context.operand(k + 1), source);
    ++k;
  }
  const RegisterId d = context.write(context.operand(0), result);
  Operation& operation = context.emit(context.units().integer(op, type), InstructionClass::integer);
  operation.d = d;
  operation.a = ids[0];
  operation.b = ids[1];
  operation.c = ids[2];
  operation.immediate = immediate;
}

void logic_of_predicates(DecodeContext& context, IntegerOp op, size_t sources) {
  context.finish(sources + 1);
  bool flip[2] = {};
  RegisterId ids[2] = {};
  for (size_t k = 0; k < sources; ++k) ids[k] = context.read_predicate(context.operand(k + 1), flip[k]);
  if (flip[0] || flip[1]) context.fail("'!' is not known here");
  const RegisterId d = context.write_predicate(context.operand(0));
  Operation& operation = context.emit(context.units().predicate_logic(op), InstructionClass::control);
  operation.d = d;
  operation.a = ids[0];
  operation.b = sources > 1 ? ids[1] : ids[0];
}

void logic(DecodeContext& context, IntegerOp op, size_t sources) {
  const Type type = context.type();
  if (type == Type::pred) return logic_of_predicates(context, op, sources);
  if (sources == 1) return emit(context, op, type, type, {type});
  emit(context, op, type, type, {type, type});
}

void bit_and(DecodeContext& c) {
  logic(c, IntegerOp::bit_and, 2);
}
void bit_or(DecodeContext& c) {
  logic(c, IntegerOp::bit_or, 2);
}
void bit_xor(DecodeContext& c) {
  logic(c, IntegerOp::bit_xor, 2);
}
void bit_not(DecodeContext& c) {
  logic(c, IntegerOp::bit_not, 1);
}
void cnot(DecodeContext& c) {
  logic(c, IntegerOp::cnot, 1);
}

void shift(DecodeContext& context, IntegerOp op) {
  const Type type = context.type();
  emit(context, op, type, type, {type, Type::u32});
}
void shl(DecodeContext& c) {
  shift(c, IntegerOp::shl);
}
void shr(DecodeContext& c) {
  shift(c, IntegerOp::shr);
}

void shf(DecodeContext& context) {
  const bool left = context.modifiers.accept("l");
  if (!left && !context.modifiers.accept("r")) context.fail("expected .l or .r");
  const bool wrap = context.modifiers.accept("wrap");
  if (!wrap && !context.modifiers.accept("clamp")) context.fail("expected .clamp or .wrap");
  const Type type = context.type();
  const IntegerOp op = left ? (wrap ? IntegerOp::shf_l_wrap : IntegerOp::shf_l_clamp)
                            : (wrap ? IntegerOp::shf_r_wrap : IntegerOp::shf_r_clamp);
  emit(context, op, type, type, {type, type, Type::u32});
}

/// Instructions whose result is a count or a position of 32 bits.
void counted(DecodeContext& context, IntegerOp op) {
  const Type type = context.type();
  emit(context, op, type, Type::u32, {type});
}
void popc(DecodeContext& c) {
  counted(c, IntegerOp::popc);
}
void clz(DecodeContext& c) {
  counted(c, IntegerOp::clz);
}
void bfind(DecodeContext& c) {
  counted(c, c.modifiers.accept("shiftamt") ? IntegerOp::bfind_shift : IntegerOp::bfind);
}

void brev(DecodeContext& c) {
  const Type type = c.type();
  emit(c, IntegerOp::brev, type, type, {type});
}
void bfe(DecodeContext& c) {
  const Type type = c.type();
  emit(c, IntegerOp::bfe, type, type, {type, Type::u32, Type::u32});
}
void fns(DecodeContext& c) {
  const Type type = c.type();
  emit(c, IntegerOp::fns, type, type, {Type::u32, Type::u32, Type::s32});
}

// bfi.type f, a, b, c, d
void bfi(DecodeContext& context) {
  const Type type = context.type();
  context.finish(5);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId position = context.read(context.operand(3), Type::u32);
  const RegisterId length = context.read(context.operand(4), Type::u32);
  const RegisterId d = context.write(context.operand(0), type);
  Operation& operation = context.emit(context.units().integer(IntegerOp::bfi, type), InstructionClass::integer);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = position;
  operation.list = {{ListEntry::Kind::read, length}};
}

void clamped_or_wrapped(DecodeContext& context, IntegerOp clamp, IntegerOp wrap) {
  const bool wraps = context.modifiers.accept("wrap");
  if (!wraps && !context.modifiers.accept("clamp")) context.fail("expected .clamp or .wrap");
  const Type type = context.type();
  emit(context, wraps ? wrap : clamp, type, type, {type, Type::u32});
}
void szext(DecodeContext& c) {
  clamped_or_wrapped(c, IntegerOp::szext_clamp, IntegerOp::szext_wrap);
}
void bmsk(DecodeContext& c) {
  clamped_or_wrapped(c, IntegerOp::bmsk_clamp, IntegerOp::bmsk_wrap);
}

void lop3(DecodeContext& context) {
  if (context.modifiers.accept_one({"and", "or"})) context.fail("lop3 with a predicate is not supported");
  const Type type = context.type();
  context.finish(5);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), type);
  const RegisterId c = context.read(context.operand(3), type), d = context.write(context.operand(0), type);
  const int64_t table = context.literal(context.operand(4));
  Operation& operation = context.emit(context.units().integer(IntegerOp::lop3, type), InstructionClass::integer);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = c;
  operation.immediate = table;
}

void prmt(DecodeContext& context) {
  const Type type = context.type();
  IntegerOp op = IntegerOp::prmt;
  if (const auto mode = context.modifiers.accept_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})) {
    op = *mode == "f4e"   ? IntegerOp::prmt_f4e
         : *mode == "b4e" ? IntegerOp::prmt_b4e
         : *mode == "rc8" ? IntegerOp::prmt_rc8
         : *mode == "ecl" ? IntegerOp::prmt_ecl
         : *mode == "ecr" ? IntegerOp::prmt_ecr
                          : IntegerOp::prmt_rc16;
  }
  emit(context, op, type, type, {type, type, Type::u32});
}

constexpr DecoderEntry bits_entries[] = {
    {"and", bit_and}, {"or", bit_or},   {"xor", bit_xor}, {"not", bit_not}, {"cnot", cnot}, {"shl", shl}, {"shr", shr},
    {"shf", shf},     {"popc", popc},   {"clz", clz},     {"bfind", bfind}, {"brev", brev}, {"bfe", bfe}, {"bfi", bfi},
    {"fns", fns},     {"szext", szext}, {"bmsk", bmsk},   {"lop3", lop3},   {"prmt", prmt},
};

}  // namespace

std::span<const DecoderEntry> bit_decoders() {
  return bits_entries;
}

}  // namespace kiln::emulator
