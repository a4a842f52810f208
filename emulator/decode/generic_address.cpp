#include "generic_address.h"

namespace kiln::emulator {

using ptx::Space;
using ptx::Type;

RegisterId generic_address(DecodeContext& context, const ptx::Operand& operand, Space space) {
  ptx::Operand first = operand;
  first.elements.clear();
  const DecodeContext::Address address = context.address(first, space);
  RegisterId sum = address.base;
  const auto add = [&](RegisterId other) {
    const bool narrow = context.width(sum) == RegisterClass::b32;
    Operation& operation = context.emit_unguarded(
        context.units().integer(IntegerOp::add, narrow ? Type::u32 : Type::u64), InstructionClass::free);
    operation.a = sum;
    operation.b = other;
    sum = operation.d = context.temporary(narrow ? RegisterClass::b32 : RegisterClass::b64);
  };
  if (address.offset != 0) add(context.constant(static_cast<uint64_t>(address.offset), context.width(sum)));
  if (context.width(sum) == RegisterClass::b32) {
    const Conversion widening = {.to = Type::u64, .from = Type::u32};
    Operation& operation = context.emit_unguarded(context.units().convert(widening), InstructionClass::free);
    operation.immediate = context.units().conversion_steps(widening);
    operation.a = sum;
    sum = operation.d = context.temporary(RegisterClass::b64);
  }
  if (space == Space::shared) add(context.special(Special::shared_base, RegisterClass::b64));
  return sum;
}

Space space_among(DecodeContext& context, std::initializer_list<Space> allowed) {
  const auto space = context.modifiers.space();
  if (!space) return Space::generic;
  for (const Space one : allowed) {
    if (one == *space) return *space;
  }
  context.fail("this state space is not known here");
}

}  // namespace kiln::emulator
