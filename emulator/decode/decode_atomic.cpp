// atom and red.
#include <array>

#include "decoders.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr std::array<std::pair<std::string_view, AtomicOp>, 10> atomic_operations = {{
    {"add", AtomicOp::add},
    {"exch", AtomicOp::exch},
    {"cas", AtomicOp::cas},
    {"min", AtomicOp::min},
    {"max", AtomicOp::max},
    {"inc", AtomicOp::inc},
    {"dec", AtomicOp::dec},
    {"and", AtomicOp::bit_and},
    {"or", AtomicOp::bit_or},
    {"xor", AtomicOp::bit_xor},
}};

AtomicOp operation_of(DecodeContext& context) {
  for (const auto& [word, op] : atomic_operations) {
    if (context.modifiers.accept(word)) return op;
  }
  context.fail("expected an atomic operation (.add, .cas, ...)");
}

// {atom,red}[.sem][.scope][.space].op[.noftz][.vec].type [d,] [a], b[, c]
void decode(DecodeContext& context, bool returns) {
  Atomic atomic;
  atomic.returns = returns;
  atomic.space = context.modifiers.space().value_or(Space::generic);
  atomic.op = operation_of(context);
  const uint8_t order = context.memory_order(order_strong);
  context.modifiers.accept("noftz");
  const bool policy = context.modifiers.accept("L2::cache_hint");
  const auto vector = context.modifiers.accept_one({"v2", "v4", "v8"});
  atomic.type = context.type();
  const bool swap = atomic.op == AtomicOp::cas;
  const size_t first = returns ? 1 : 0;
  context.finish(first + 2 + (swap ? 1 : 0) + (policy ? 1 : 0));
  const DecodeContext::Address address = context.address(context.operand(first), atomic.space);
  if (atomic.space == Space::local || atomic.space == Space::param || atomic.space == Space::constant) {
    context.fail("atomics work on global and shared memory");
  }
  atomic.address_bytes = bytes_of(context.width(address.base));
  // A vector is so many separate operations: each element is atomic, the whole is not.
  const size_t elements = vector ? static_cast<size_t>((*vector)[1] - '0') : 1;
  for (size_t k = 0; k < elements; ++k) {
    const auto part = [&](const Operand& operand) -> const Operand& {
      if (elements == 1) return operand;
      if (operand.kind != Operand::Kind::vector || operand.elements.size() != elements)
        context.fail("expected a vector");
      return operand.elements[k];
    };
    const RegisterId b = context.read(part(context.operand(first + 1)), atomic.type);
    const RegisterId c = swap ? context.read(context.operand(first + 2), atomic.type) : b;
    const RegisterId d = returns ? context.write(part(context.operand(0)), atomic.type) : 0;
    const InstructionClass counted_as = k > 0                           ? InstructionClass::free
                                        : atomic.space == Space::shared ? InstructionClass::shared_atomic
                                                                        : InstructionClass::global_atomic;
    Operation& operation = context.emit(context.units().atomic(atomic), counted_as);
    operation.d = d;
    operation.a = address.base;
    operation.b = b;
    operation.c = c;
    operation.order = order;
    context.note_access(atomic.space, ptx::bytes(atomic.type));
    operation.immediate = address.offset + static_cast<int64_t>(k * ptx::bytes(atomic.type));
  }
}

void atom(DecodeContext& context) {
  decode(context, true);
}
void red(DecodeContext& context) {
  decode(context, false);
}

constexpr DecoderEntry atomic_entries[] = {{"atom", atom}, {"red", red}};

}  // namespace

std::span<const DecoderEntry> atomic_decoders() {
  return atomic_entries;
}

}  // namespace kiln::emulator
