#include "decode/context.h"

#include <algorithm>
#include <bit>

#include "decode/lowering.h"
#include "scheduler/control_flow.h"
#include "special_registers.h"

namespace kiln::emulator {

using ptx::Operand;
using ptx::Type;

RegisterClass class_of(Type type) {
  switch (ptx::bytes(type)) {
    case 1:
    case 2:
      return RegisterClass::b16;
    case 4:
      return RegisterClass::b32;
    case 8:
      return RegisterClass::b64;
    default:
      return RegisterClass::predicate;
  }
}

Type bits_type(RegisterClass width) {
  switch (width) {
    case RegisterClass::b16:
      return Type::b16;
    case RegisterClass::b32:
      return Type::b32;
    case RegisterClass::b64:
      return Type::b64;
    default:
      return Type::pred;
  }
}

bool is_block_scope(std::string_view scope) {
  return scope == "cta" || scope == "cluster";
}

DecodeContext::DecodeContext(Lowering& lowering, const ptx::Instruction& instruction, RegisterId guard)
    : modifiers(instruction.modifiers),
      lowering_(lowering),
      instruction_(instruction),
      units_(lowering.units()),
      guard_(guard) {}

void DecodeContext::fail(std::string_view why) const {
  std::string text;
  for (const char c : instruction_.text) text += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
  throw LoadError(instruction_.line, fmt::format("{}: {}", why, text));
}

const Operand& DecodeContext::operand(size_t index) const {
  if (index >= instruction_.operands.size()) fail(fmt::format("expected at least {} operands", index + 1));
  return instruction_.operands[index];
}

Type DecodeContext::type() {
  const auto type = modifiers.type();
  if (!type) fail("expected a type");
  return *type;
}

void DecodeContext::finish_modifiers() {
  if (!modifiers.empty()) fail(fmt::format("modifier '.{}' is not known here", modifiers.first()));
}

void DecodeContext::finish(size_t count) {
  finish_modifiers();
  if (instruction_.operands.size() != count) {
    fail(fmt::format("expected {} operands, found {}", count, instruction_.operands.size()));
  }
}

int DecodeContext::target_capability() const {
  return lowering_.target_capability();
}

int DecodeContext::tensor_hardware() const {
  return lowering_.tensor_hardware();
}

void DecodeContext::require_target(int capability, std::string_view what) const {
  if (target_capability() >= capability) return;
  fail(fmt::format("{} needs .target sm_{} or higher", what, capability));
}

const std::vector<Operand>& DecodeContext::vector(const Operand& operand, size_t count) const {
  if (operand.kind != Operand::Kind::vector || operand.elements.size() != count) {
    fail(fmt::format("expected a vector of {} registers", count));
  }
  return operand.elements;
}

Entity DecodeContext::entity(std::string_view name) const {
  return lowering_.find(name, instruction_.line);
}

RegisterClass DecodeContext::width(RegisterId id) const {
  return lowering_.list().registers[id].width;
}
RegisterId DecodeContext::temporary(RegisterClass width) {
  return lowering_.temporary(width);
}
RegisterId DecodeContext::carry_flag() {
  return lowering_.carry_flag();
}
RegisterId DecodeContext::constant(uint64_t bits, RegisterClass width) {
  return lowering_.constant(bits, width, false);
}
RegisterId DecodeContext::constant_predicate(bool value) {
  return lowering_.constant(value ? 1 : 0, RegisterClass::predicate, false);
}
RegisterId DecodeContext::special(Special what, RegisterClass width) {
  return lowering_.special(what, width);
}

bool DecodeContext::is_sink(const Operand& operand) const {
  return operand.kind == Operand::Kind::name && operand.name == "_";
}

bool DecodeContext::is_declared_register(const Operand& operand) const {
  if (operand.kind != Operand::Kind::name || operand.name == "_" || operand.name == "WARP_SZ" ||
      special_named(operand.name) || clock_named(operand.name)) {
    return false;
  }
  return std::holds_alternative<RegisterName>(entity(operand.name));
}

bool DecodeContext::is_predicate(const Operand& operand) const {
  return is_declared_register(operand) && width(register_named(operand.name)) == RegisterClass::predicate;
}

int64_t DecodeContext::literal(const Operand& operand) const {
  if (operand.kind != Operand::Kind::integer) fail("expected an integer literal");
  return static_cast<int64_t>(operand.bits);
}

uint8_t DecodeContext::memory_order(uint8_t otherwise) {
  uint8_t order = otherwise;
  const auto take = [&](std::string_view word, uint8_t meaning) {
    if (modifiers.accept(word)) order |= order_strong | meaning;
  };
  take("volatile", order_strong);
  take("relaxed", order_strong);
  take("mmio", order_strong);
  take("acquire", order_acquires);
  take("release", order_releases);
  take("acq_rel", order_acquires | order_releases);
  const auto scope = modifiers.accept_one({"cta", "cluster", "gpu", "sys"});
  if (scope && is_block_scope(*scope)) order |= order_in_block;
  if ((order & (order_acquires | order_releases)) != 0) note_partial_synchronisation();
  return order;
}

void DecodeContext::note_access(ptx::Space space, uint32_t bytes) {
  OperationList& list = lowering_.list();
  const bool anywhere = space == ptx::Space::generic;
  if (space == ptx::Space::shared || anywhere) list.shared_piece_bytes = std::min(list.shared_piece_bytes, bytes);
  if (space == ptx::Space::global || anywhere) list.global_piece_bytes = std::min(list.global_piece_bytes, bytes);
}

void DecodeContext::note_partial_synchronisation() {
  lowering_.list().synchronises_in_parts = true;
}

RegisterId DecodeContext::address_of(const VariableName& variable, int64_t offset, RegisterClass width) {
  const uint64_t place = variable.place + static_cast<uint64_t>(offset);
  if (variable.space != ptx::Space::param) {
    return lowering_.constant(width == RegisterClass::b32 ? static_cast<uint32_t>(place) : place, width,
                              variable.dynamic_shared);
  }
  const RegisterId result = temporary(RegisterClass::b64);
  Operation& add = emit_unguarded(units_.integer(IntegerOp::add, Type::u64), InstructionClass::free);
  add.d = result;
  add.a = special(Special::parameter_base, RegisterClass::b64);
  add.b = constant(place, RegisterClass::b64);
  return result;
}

RegisterId DecodeContext::register_named(std::string_view name) const {
  const Entity found = entity(name);
  const auto* known = std::get_if<RegisterName>(&found);
  if (known == nullptr) fail(fmt::format("'{}' is not a register", name));
  return known->id;
}

RegisterId DecodeContext::any(const Operand& operand) {
  if (operand.kind != Operand::Kind::name) fail("expected a register");
  return register_named(operand.name);
}

RegisterId DecodeContext::read(const Operand& operand, Type type) {
  const RegisterClass wanted = class_of(type);
  switch (operand.kind) {
    case Operand::Kind::integer: {
      if (ptx::is_floating(type)) fail("an integer literal stands for a floating-point operand");
      const uint32_t bits = 8 * bytes_of(wanted);
      return constant(bits == 64 ? operand.bits : operand.bits & ((uint64_t{1} << bits) - 1), wanted);
    }
    case Operand::Kind::f32:
      if (wanted == RegisterClass::b32) return constant(operand.bits, wanted);
      if (type == Type::f64) {
        return constant(std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(operand.bits))}),
                        wanted);
      }
      fail("a single-precision literal stands for an operand of another width");
    case Operand::Kind::f64:
      if (wanted == RegisterClass::b64) return constant(operand.bits, wanted);
      if (type == Type::f32) {
        return constant(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits))), wanted);
      }
      fail("a double-precision literal stands for an operand of another width");
    case Operand::Kind::name:
      break;
    default:
      fail("expected a register or a constant");
  }
  if (operand.negated) fail("'!' is only for predicates");
  if (operand.name == "WARP_SZ") return constant(32, wanted);
  if (const auto what = special_named(operand.name)) return special(*what, wanted);
  if (const auto clock = clock_named(operand.name)) {
    const RegisterId now = temporary(wanted);
    Operation& operation =
        emit(wanted == RegisterClass::b64 ? execute_clock_64 : execute_clock_32, InstructionClass::free);
    operation.d = now;
    if (clock->nanoseconds) operation.immediate |= clock_nanoseconds;
    if (clock->high) operation.immediate |= clock_high;
    return now;
  }
  const Entity found = entity(operand.name);
  if (const auto* variable = std::get_if<VariableName>(&found)) {
    if (wanted != RegisterClass::b64 && wanted != RegisterClass::b32) fail("an address has 32 or 64 bits");
    return address_of(*variable, operand.offset, wanted);
  }
  const RegisterId id = any(operand);
  if (width(id) != wanted) fail(fmt::format("register '{}' does not have the width of .{}", operand.name, name(type)));
  return id;
}

RegisterId DecodeContext::write(const Operand& operand, Type type) {
  if (is_sink(operand)) return temporary(class_of(type));
  const RegisterId id = any(operand);
  if (width(id) != class_of(type)) {
    fail(fmt::format("register '{}' does not have the width of .{}", operand.name, name(type)));
  }
  return id;
}

RegisterId DecodeContext::read_predicate(const Operand& operand, bool& negated) {
  negated = operand.negated;
  if (operand.kind == Operand::Kind::integer) return constant_predicate(operand.bits != 0);
  if (operand.name == "%is_explicit_cluster") return constant_predicate(false);
  const RegisterId id = any(operand);
  if (width(id) != RegisterClass::predicate) fail(fmt::format("'{}' is not a predicate", operand.name));
  return id;
}

RegisterId DecodeContext::write_predicate(const Operand& operand) {
  if (is_sink(operand)) return temporary(RegisterClass::predicate);
  const RegisterId id = any(operand);
  if (width(id) != RegisterClass::predicate) fail(fmt::format("'{}' is not a predicate", operand.name));
  return id;
}

DecodeContext::Address DecodeContext::address(const Operand& operand, ptx::Space space) {
  if (operand.kind != Operand::Kind::address) fail("expected an address in brackets");
  if (!operand.elements.empty()) fail("an address of several parts is not known here");
  Address result;
  result.space = space;
  result.offset = operand.offset;
  if (operand.name.empty()) {
    result.base = constant(0, space == ptx::Space::shared ? RegisterClass::b32 : RegisterClass::b64);
    return result;
  }
  const Entity found = entity(operand.name);
  if (const auto* variable = std::get_if<VariableName>(&found)) {
    if (variable->space == ptx::Space::param) {
      if (space != ptx::Space::param) fail("a kernel parameter is read with ld.param");
      result.offset += static_cast<int64_t>(variable->place);
      result.kernel_parameter = true;
      return result;
    }
    // A parameter of an inlined function, or of a call, lives in local memory.
    if (variable->space == ptx::Space::local && space == ptx::Space::param) result.space = ptx::Space::local;
    const bool narrow = variable->space == ptx::Space::shared && space == ptx::Space::shared;
    result.base = address_of(*variable, 0, narrow ? RegisterClass::b32 : RegisterClass::b64);
    if (space == ptx::Space::generic && variable->space != ptx::Space::global &&
        variable->space != ptx::Space::constant) {
      fail("the address of this variable is not generic");
    }
    return result;
  }
  result.base = register_named(operand.name);
  if (width(result.base) != RegisterClass::b64 && width(result.base) != RegisterClass::b32) {
    fail("an address register has 32 or 64 bits");
  }
  if (width(result.base) == RegisterClass::b32 && space != ptx::Space::shared && space != ptx::Space::local) {
    fail("an address in this state space has 64 bits");
  }
  return result;
}

LabelId DecodeContext::label_named(std::string_view name) {
  const Entity found = entity(name);
  const auto* label = std::get_if<LabelName>(&found);
  if (label == nullptr) fail(fmt::format("'{}' is not a label", name));
  return label->id;
}

LabelId DecodeContext::label(const Operand& operand) {
  if (operand.kind != Operand::Kind::name) fail("expected a label");
  return label_named(operand.name);
}

const ptx::BranchTargets& DecodeContext::branch_table(const Operand& operand) {
  const Entity found = entity(operand.name);
  const auto* table = std::get_if<BranchTable>(&found);
  if (table == nullptr) fail(fmt::format("'{}' is not a table of branch targets", operand.name));
  return *table->targets;
}

uint32_t DecodeContext::kernel_parameter_bytes() const {
  return lowering_.parameter_bytes();
}

LabelId DecodeContext::new_label() {
  return lowering_.list().labels++;
}

void DecodeContext::place_label(LabelId label) {
  Operation operation;
  operation.flow = Operation::Flow::label;
  operation.label = label;
  operation.source = lowering_.position();
  lowering_.list().operations.push_back(std::move(operation));
}

Operation& DecodeContext::emit(HandlerPair handlers, InstructionClass counted_as) {
  if (handlers.fast == nullptr || handlers.checked == nullptr)
    fail("this form of the instruction does not exist or is not supported");
  Operation operation;
  operation.handlers = handlers;
  operation.counted_as = counted_as;
  operation.guard = guard_;
  operation.guard_negated = instruction_.guard_negated;
  operation.source = lowering_.position();
  lowering_.list().operations.push_back(std::move(operation));
  return lowering_.list().operations.back();
}

Operation& DecodeContext::emit(Handler handler, InstructionClass counted_as) {
  return emit(HandlerPair{handler, handler}, counted_as);
}

Operation& DecodeContext::emit_unguarded(Handler handler, InstructionClass counted_as) {
  Operation& operation = emit(handler, counted_as);
  operation.guard = 0;
  operation.guard_negated = false;
  return operation;
}

}  // namespace kiln::emulator
