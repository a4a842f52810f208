// ld, st and cp.async.
#include "decoders.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// Modifiers that concern caches and memory order only: a thread's accesses are performed in order.
struct Hints {
  bool policy = false;  ///< an operand with a cache policy follows
  uint8_t order = order_weak;
};
Hints take_hints(DecodeContext& context) {
  Modifiers& modifiers = context.modifiers;
  Hints hints;
  hints.policy = modifiers.accept("L2::cache_hint");
  modifiers.accept_one({"L2::64B", "L2::128B", "L2::256B"});
  for (const std::string_view level : {"L1::", "L2::"}) {
    modifiers.accept_behind(level, {"evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate"});
  }
  hints.order = context.memory_order(order_weak);
  for (const std::string_view word : {"weak", "ca", "cg", "cs", "lu", "cv", "nc", "wb", "wt"}) modifiers.accept(word);
  return hints;
}

uint32_t vector_length(Modifiers& modifiers) {
  if (modifiers.accept("v2")) return 2;
  if (modifiers.accept("v4")) return 4;
  if (modifiers.accept("v8")) return 8;
  return 1;
}

InstructionClass load_class(Space space) {
  switch (space) {
    case Space::shared:
      return InstructionClass::shared_load;
    case Space::local:
      return InstructionClass::local_access;
    case Space::param:
    case Space::constant:
      return InstructionClass::constant_access;
    default:
      return InstructionClass::global_load;
  }
}

InstructionClass store_class(Space space) {
  switch (space) {
    case Space::shared:
      return InstructionClass::shared_store;
    case Space::local:
      return InstructionClass::local_access;
    default:
      return InstructionClass::global_store;
  }
}

std::vector<const Operand*> elements_of(DecodeContext& context, const Operand& operand, uint32_t count) {
  std::vector<const Operand*> elements;
  if (count == 1) {
    elements.push_back(operand.kind == Operand::Kind::vector && operand.elements.size() == 1 ? &operand.elements[0]
                                                                                             : &operand);
    return elements;
  }
  for (const Operand& element : context.vector(operand, count)) elements.push_back(&element);
  return elements;
}

/// The width that all of an access's registers have.
RegisterClass common_width(DecodeContext& context, const std::vector<RegisterId>& ids, Type type) {
  const RegisterClass width = context.width(ids.front());
  for (const RegisterId id : ids) {
    if (context.width(id) != width) context.fail("the registers differ in width");
  }
  if (width == RegisterClass::predicate || bytes_of(width) < ptx::bytes(type)) {
    context.fail(fmt::format("the register is narrower than .{}", name(type)));
  }
  return width;
}

Access access_of(DecodeContext& context, const DecodeContext::Address& address, Type type, uint32_t elements,
                 RegisterClass width, bool strong) {
  Access access;
  access.space = address.kernel_parameter        ? Space::param
                 : address.space == Space::param ? Space::constant  // through a register: a host address
                                                 : address.space;
  access.address_bytes = address.base == 0 ? 8 : bytes_of(context.width(address.base));
  access.bytes = ptx::bytes(type);
  access.elements = elements;
  access.register_bytes = bytes_of(width);
  access.sign_extend = is_signed(type);
  access.strong = strong;
  return access;
}

void set_shape(Operation& operation, const Access& access) {
  operation.c_is_number = true;
  operation.c_number = access.register_bytes | (access.sign_extend ? 0x100 : 0);
}

void ld(DecodeContext& context) {
  const Space space = context.modifiers.space().value_or(Space::generic);
  const Hints hints = take_hints(context);
  const uint32_t count = vector_length(context.modifiers);
  const Type type = context.type();
  context.finish(hints.policy ? 3 : 2);
  const DecodeContext::Address address = context.address(context.operand(1), space);
  const auto elements = elements_of(context, context.operand(0), count);
  RegisterId known = 0;  // "_" takes the width of the others
  for (const Operand* element : elements) {
    if (!context.is_sink(*element)) known = context.any(*element);
  }
  const RegisterClass sink = known != 0 ? context.width(known) : class_of(type);
  std::vector<RegisterId> ids;
  for (const Operand* element : elements) {
    ids.push_back(context.is_sink(*element) ? context.temporary(sink) : context.any(*element));
  }
  const RegisterClass width = common_width(context, ids, type);
  const Access access = access_of(context, address, type, count, width, hints.order != order_weak);
  if (address.kernel_parameter && (address.offset < 0 || static_cast<uint64_t>(address.offset) + access.bytes * count >
                                                             context.kernel_parameter_bytes())) {
    context.fail("this reads beyond the kernel's parameters");
  }
  Operation& operation = context.emit(context.units().load(access), load_class(address.space));
  operation.a = address.base;
  operation.immediate = address.offset;
  operation.order = hints.order;
  context.note_access(access.space, access.bytes * count);
  set_shape(operation, access);
  if (count == 1) {
    operation.d = ids[0];
  } else {
    for (const RegisterId id : ids) operation.list.push_back({ListEntry::Kind::write, id});
  }
}

void st(DecodeContext& context) {
  const Space space = context.modifiers.space().value_or(Space::generic);
  const Hints hints = take_hints(context);
  const uint32_t count = vector_length(context.modifiers);
  const Type type = context.type();
  context.finish(hints.policy ? 3 : 2);
  const DecodeContext::Address address = context.address(context.operand(0), space);
  if (address.kernel_parameter) context.fail("kernel parameters cannot be written");
  std::vector<RegisterId> ids;
  for (const Operand* element : elements_of(context, context.operand(1), count)) {
    ids.push_back(context.is_declared_register(*element) ? context.any(*element) : context.read(*element, type));
  }
  const RegisterClass width = common_width(context, ids, type);
  const Access access = access_of(context, address, type, count, width, hints.order != order_weak);
  Operation& operation = context.emit(context.units().store(access), store_class(address.space));
  operation.a = address.base;
  operation.immediate = address.offset;
  operation.order = hints.order;
  context.note_access(access.space, access.bytes * count);
  set_shape(operation, access);
  if (count == 1) {
    operation.b = ids[0];
  } else {
    for (const RegisterId id : ids) operation.list.push_back({ListEntry::Kind::read, id});
  }
}

// cp.async.{ca,cg}.shared.global [to], [from], bytes[, source bytes | ignore][, policy]
void copy_async(DecodeContext& context) {
  const bool policy = take_hints(context).policy;
  const auto to_space = context.modifiers.space(), from_space = context.modifiers.space();
  if (to_space != Space::shared || from_space != Space::global) context.fail("expected .shared.global");
  context.finish_modifiers();
  const size_t count = context.operands() - (policy ? 1 : 0);
  if (count != 3 && count != 4) context.fail("expected 3 or 4 operands");
  const DecodeContext::Address to = context.address(context.operand(0), Space::shared);
  const DecodeContext::Address from = context.address(context.operand(1), Space::global);
  const int64_t bytes = context.literal(context.operand(2));
  if (bytes != 4 && bytes != 8 && bytes != 16) context.fail("a copy has 4, 8 or 16 bytes");
  RegisterId wanted = 0;
  if (count == 4 && context.is_predicate(context.operand(3))) {  // nothing is read where the predicate holds
    bool negated = false;
    const RegisterId ignore = context.read_predicate(context.operand(3), negated);
    wanted = context.temporary(RegisterClass::b32);
    const RegisterId none = context.constant(0, RegisterClass::b32);
    const RegisterId all = context.constant(static_cast<uint64_t>(bytes), RegisterClass::b32);
    Operation& choose = context.emit(context.units().integer(IntegerOp::select, Type::b32), InstructionClass::free);
    choose.d = wanted;
    choose.a = none;
    choose.b = all;
    choose.c = ignore;
    choose.immediate = negated ? 1 : 0;
  } else if (count == 4) {
    wanted = context.read(context.operand(3), Type::u32);
  }
  Operation& operation =
      context.emit(context.units().copy_async(bytes_of(context.width(to.base))), InstructionClass::global_load);
  context.note_access(Space::shared, static_cast<uint32_t>(bytes));
  context.note_access(Space::global, static_cast<uint32_t>(bytes));
  operation.a = to.base;
  operation.b = from.base;
  operation.c = wanted;
  operation.immediate = from.offset;
  operation.list = {{ListEntry::Kind::number, static_cast<uint32_t>(bytes)},
                    {ListEntry::Kind::number, static_cast<uint32_t>(to.offset)}};
}

void cp(DecodeContext& context) {
  if (!context.modifiers.accept("async")) context.fail("only cp.async is supported");
  if (context.modifiers.accept("bulk")) return decode_bulk_copy(context);
  if (context.modifiers.accept("commit_group")) {
    context.finish(0);
    context.emit(execute_commit_group, InstructionClass::control);
  } else if (context.modifiers.accept("wait_all")) {
    context.finish(0);
    context.emit(execute_wait_group, InstructionClass::control).immediate = -1;
  } else if (context.modifiers.accept("wait_group")) {
    context.finish(1);
    const int64_t pending = context.literal(context.operand(0));
    context.emit(execute_wait_group, InstructionClass::control).immediate = pending;
  } else {
    copy_async(context);
  }
}

constexpr DecoderEntry memory_entries[] = {
    {"ld", ld},
    {"ldu", ld},
    {"st", st},
    {"cp", cp},
};

}  // namespace

std::span<const DecoderEntry> memory_decoders() {
  return memory_entries;
}

}  // namespace kiln::emulator
