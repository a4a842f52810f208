// mov, with packing and unpacking of vectors.
#include "decoders.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

Type part_type(DecodeContext& context, Type whole, size_t parts) {
  const uint32_t bytes = parts == 0 ? 0 : ptx::bytes(whole) / static_cast<uint32_t>(parts);
  if (bytes == 2) return Type::b16;
  if (bytes == 4) return Type::b32;
  context.fail("a vector of this many parts is not supported here");
}

// mov.b64 d, {a, b}
void pack(DecodeContext& context, Type type) {
  const std::vector<Operand>& parts = context.operand(1).elements;
  const Type part = part_type(context, type, parts.size());
  std::vector<ListEntry> list;
  for (const Operand& element : parts) list.push_back({ListEntry::Kind::read, context.read(element, part)});
  const RegisterId d = context.write(context.operand(0), type);
  Operation& operation = context.emit(context.units().pack(ptx::bytes(part), static_cast<uint32_t>(parts.size())),
                                      InstructionClass::integer);
  operation.d = d;
  operation.list = std::move(list);
}

// mov.b64 {a, b}, d
void unpack(DecodeContext& context, Type type) {
  const std::vector<Operand>& parts = context.operand(0).elements;
  const Type part = part_type(context, type, parts.size());
  const RegisterId a = context.read(context.operand(1), type);
  std::vector<ListEntry> list;
  for (const Operand& element : parts) list.push_back({ListEntry::Kind::write, context.write(element, part)});
  Operation& operation = context.emit(context.units().unpack(ptx::bytes(part), static_cast<uint32_t>(parts.size())),
                                      InstructionClass::integer);
  operation.a = a;
  operation.list = std::move(list);
}

void mov_predicate(DecodeContext& context) {
  bool negated = false;
  const RegisterId a = context.read_predicate(context.operand(1), negated);
  const RegisterId d = context.write_predicate(context.operand(0));
  Operation& operation = context.emit(context.units().predicate_logic(negated ? IntegerOp::bit_not : IntegerOp::move),
                                      InstructionClass::control);
  operation.d = d;
  operation.a = a;
  operation.b = a;
}

void mov(DecodeContext& context) {
  const Type type = context.type();
  context.finish(2);
  if (type == Type::pred) return mov_predicate(context);
  if (context.operand(1).kind == Operand::Kind::vector) return pack(context, type);
  if (context.operand(0).kind == Operand::Kind::vector) return unpack(context, type);
  const RegisterId a = context.read(context.operand(1), type), d = context.write(context.operand(0), type);
  const Type bits = bits_type(class_of(type));
  Operation& operation = context.emit(context.units().integer(IntegerOp::move, bits), InstructionClass::integer);
  operation.d = d;
  operation.a = a;
}

constexpr DecoderEntry move_entries[] = {{"mov", mov}};

}  // namespace

std::span<const DecoderEntry> move_decoders() {
  return move_entries;
}

}  // namespace kiln::emulator
