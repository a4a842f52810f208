// cvt, cvt.pack and cvta.
#include "decoders.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

using ptx::Type;

void rounding(DecodeContext& context, Conversion& conversion) {
  struct Word {
    std::string_view word;
    Rounding rounding;
    bool to_integer;
  };
  static constexpr Word words[] = {
      {"rni", Rounding::nearest, true}, {"rzi", Rounding::zero, true},    {"rmi", Rounding::down, true},
      {"rpi", Rounding::up, true},      {"rn", Rounding::nearest, false}, {"rz", Rounding::zero, false},
      {"rm", Rounding::down, false},    {"rp", Rounding::up, false},      {"rna", Rounding::away, false},
  };
  for (const Word& w : words) {
    if (!context.modifiers.accept(w.word)) continue;
    conversion.rounding = w.rounding;
    conversion.to_integer = w.to_integer;
    return;
  }
}

Operation& emit(DecodeContext& context, const Conversion& conversion, RegisterId d, RegisterId a,
                InstructionClass counted_as) {
  Operation& operation = context.emit(context.units().convert(conversion), counted_as);
  operation.d = d;
  operation.a = a;
  operation.immediate = context.units().conversion_steps(conversion);
  return operation;
}

Type unsigned_type(RegisterClass width) {
  return width == RegisterClass::b16 ? Type::u16 : width == RegisterClass::b32 ? Type::u32 : Type::u64;
}

/// Reads an operand of `type`, which may stand in a wider register.
RegisterId read_narrowed(DecodeContext& context, const ptx::Operand& operand, Type type) {
  if (!context.is_declared_register(operand)) return context.read(operand, type);
  const RegisterId id = context.any(operand);
  const RegisterClass have = context.width(id), want = class_of(type);
  if (have == want) return id;
  if (bytes_of(have) < bytes_of(want) || have == RegisterClass::predicate)
    context.fail("the source register is too narrow");
  const RegisterId low = context.temporary(want);
  emit(context, {.to = unsigned_type(want), .from = unsigned_type(have)}, low, id, InstructionClass::free);
  return low;
}

/// Where a result of `type` goes first, and what widens it into the destination register.
struct Destination {
  RegisterId first = 0, last = 0;
};
Destination destination(DecodeContext& context, const ptx::Operand& operand, Type type) {
  if (context.is_sink(operand)) return {context.temporary(class_of(type)), 0};
  const RegisterId id = context.any(operand);
  const RegisterClass have = context.width(id), want = class_of(type);
  if (have == want) return {id, 0};
  if (bytes_of(have) < bytes_of(want) || have == RegisterClass::predicate) {
    context.fail("the destination register is too narrow");
  }
  return {context.temporary(want), id};
}
void widen(DecodeContext& context, const Destination& to, Type type) {
  if (to.last == 0) return;
  const RegisterClass have = context.width(to.last);
  const Type from = is_floating(type) ? unsigned_type(context.width(to.first)) : type;
  const Type wide = !is_signed(type) ? unsigned_type(have) : have == RegisterClass::b32 ? Type::s32 : Type::s64;
  emit(context, {.to = wide, .from = from}, to.last, to.first, InstructionClass::free);
}

bool is_pair(Type type) {
  return type == Type::f16x2 || type == Type::bf16x2 || type == Type::e4m3x2 || type == Type::e5m2x2;
}

/// b8, b16, ... mean the bits as an unsigned number.
Type as_number(Type type) {
  switch (type) {
    case Type::b8:
      return Type::u8;
    case Type::b16:
      return Type::u16;
    case Type::b32:
      return Type::u32;
    case Type::b64:
      return Type::u64;
    default:
      return type;
  }
}

void check_rounding(DecodeContext& context, const Conversion& conversion) {
  const bool from_float = is_floating(conversion.from), to_float = is_floating(conversion.to);
  if (from_float && !to_float && !conversion.to_integer) context.fail("expected .rni, .rzi, .rmi or .rpi");
  if (!from_float && conversion.to_integer) context.fail("an integer is not rounded to an integer");
}

void pack(DecodeContext& context);

// cvt[.rounding][.ftz][.sat][.relu][.satfinite].dtype.atype d, a[, b]
void cvt(DecodeContext& context) {
  if (context.modifiers.accept("pack")) return pack(context);
  Conversion conversion;
  rounding(context, conversion);
  conversion.flush = context.modifiers.accept("ftz");
  conversion.saturate = context.modifiers.accept("sat");
  conversion.relu = context.modifiers.accept("relu");
  conversion.satfinite = context.modifiers.accept("satfinite");
  conversion.to = as_number(context.type());
  conversion.from = as_number(context.type());
  check_rounding(context, conversion);
  const bool two_sources = is_pair(conversion.to) && conversion.from == Type::f32;
  context.finish(two_sources ? 3 : 2);
  if (conversion.rounding == Rounding::none && is_floating(conversion.to) && conversion.to != Type::tf32) {
    conversion.rounding = Rounding::nearest;
  }
  const RegisterId a = read_narrowed(context, context.operand(1), conversion.from);
  const RegisterId b = two_sources ? context.read(context.operand(2), Type::f32) : 0;
  const Destination to = destination(context, context.operand(0), conversion.to);
  emit(context, conversion, to.first, a, InstructionClass::conversion).b = b;
  widen(context, to, conversion.to);
}

/// `low` with `bits` bits of `high` above its `bits` lowest.
RegisterId stacked(DecodeContext& context, RegisterId high, RegisterId low, uint32_t bits, InstructionClass counted_as,
                   RegisterId to) {
  const RegisterId count = context.constant(bits, RegisterClass::b32);
  Operation& operation = context.emit(context.units().integer(IntegerOp::bfi, Type::b32), counted_as);
  operation.d = to;
  operation.a = high;
  operation.b = low;
  operation.c = count;
  operation.list = {{ListEntry::Kind::read, count}};
  return to;
}

// cvt.pack.sat.{u16,s16}.s32 d, a, b          d = { upper: a, lower: b }
// cvt.pack.sat.{u8,s8}.s32.b32 d, a, b, c     d = { c's lower half, a, b }
void pack(DecodeContext& context) {
  if (!context.modifiers.accept("sat")) context.fail("expected .sat");
  const Type part = context.type(), from = context.type();
  const bool bytes = ptx::bytes(part) == 1;
  if (from != Type::s32 || (!bytes && ptx::bytes(part) != 2)) context.fail("this form of cvt.pack is not supported");
  if (bytes && context.type() != Type::b32) context.fail("expected .b32");
  context.finish(bytes ? 4 : 3);
  const auto saturated = [&](size_t index) {
    const RegisterId source = context.read(context.operand(index), Type::s32);
    const RegisterId narrow = context.temporary(RegisterClass::b16), wide = context.temporary(RegisterClass::b32);
    emit(context, {.to = part, .from = Type::s32, .saturate = true}, narrow, source, InstructionClass::free);
    emit(context, {.to = Type::u32, .from = bytes ? Type::u8 : Type::u16}, wide, narrow, InstructionClass::free);
    return wide;
  };
  const RegisterId a = saturated(1), b = saturated(2);
  const RegisterId d = context.write(context.operand(0), Type::b32);
  if (!bytes) {
    stacked(context, a, b, 16, InstructionClass::conversion, d);
    return;
  }
  const RegisterId c = context.read(context.operand(3), Type::b32);
  const RegisterId low = stacked(context, a, b, 8, InstructionClass::free, context.temporary(RegisterClass::b32));
  stacked(context, c, low, 16, InstructionClass::conversion, d);
}

// cvta.space.u64 d, a    and    cvta.to.space.u64 d, a
void cvta(DecodeContext& context) {
  const bool to = context.modifiers.accept("to");
  const auto space = context.modifiers.space();
  if (!space) context.fail("expected a state space");
  const Type type = context.type();
  if (ptx::bytes(type) != 8) context.fail("addresses have 64 bits");
  context.finish(2);
  const RegisterId a = context.read(context.operand(1), type), d = context.write(context.operand(0), type);
  const bool window = *space == ptx::Space::shared || *space == ptx::Space::local;
  const IntegerOp op = !window ? IntegerOp::move : to ? IntegerOp::sub : IntegerOp::add;
  const RegisterId base =
      !window ? 0
              : context.special(*space == ptx::Space::shared ? Special::shared_base : Special::local_base,
                                RegisterClass::b64);
  Operation& operation = context.emit(context.units().integer(op, Type::u64), InstructionClass::integer);
  operation.d = d;
  operation.a = a;
  operation.b = base;
}

// isspacep.space p, a
void isspacep(DecodeContext& context) {
  const auto space = context.modifiers.space();
  if (!space) context.fail("expected a state space");
  context.finish(2);
  const RegisterId a = context.read(context.operand(1), Type::u64), d = context.write_predicate(context.operand(0));
  Operation& operation = context.emit(execute_is_space, InstructionClass::integer);
  operation.d = d;
  operation.a = a;
  operation.immediate = static_cast<int64_t>(*space);
}

constexpr DecoderEntry convert_entries[] = {{"cvt", cvt}, {"cvta", cvta}, {"isspacep", isspacep}};

}  // namespace

std::span<const DecoderEntry> convert_decoders() {
  return convert_entries;
}

}  // namespace kiln::emulator
