// Branches, calls, barriers, fences and other control.
#include "decode/lowering.h"
#include "decoders.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

void branch_to(DecodeContext& context, LabelId target) {
  Operation& operation = context.emit(execute_branch, InstructionClass::control);
  operation.flow = Operation::Flow::branch;
  operation.label = target;
  context.place_label(context.new_label());
}

void bra(DecodeContext& context) {
  context.modifiers.accept("uni");
  context.finish(1);
  branch_to(context, context.label(context.operand(0)));
}

// brx.idx[.uni] index, table
void brx(DecodeContext& context) {
  context.modifiers.accept("uni");
  if (!context.modifiers.accept("idx")) context.fail("expected .idx");
  context.finish(2);
  const RegisterId index = context.read(context.operand(0), Type::u32);
  std::vector<ListEntry> list;
  for (const std::string_view name : context.branch_table(context.operand(1)).targets) {
    list.push_back({ListEntry::Kind::label, context.label_named(name)});
  }
  Operation& operation = context.emit(execute_indexed_branch, InstructionClass::control);
  operation.flow = Operation::Flow::indexed;
  operation.a = index;
  operation.c_is_number = true;
  operation.c_number = static_cast<uint32_t>(list.size());
  operation.list = std::move(list);
  context.place_label(context.new_label());
}

void call(DecodeContext& context) {
  context.lowering().call(context);
}

void leave_kernel(DecodeContext& context) {
  context.emit(execute_exit, InstructionClass::control).flow = Operation::Flow::exit;
  context.place_label(context.new_label());
}

void ret(DecodeContext& context) {
  context.modifiers.accept("uni");
  context.finish(0);
  if (const auto after = context.lowering().return_label()) return branch_to(context, *after);
  leave_kernel(context);
}

void exit(DecodeContext& context) {
  context.finish(0);
  leave_kernel(context);
}

void trap(DecodeContext& context) {
  context.finish(0);
  context.emit(execute_trap, InstructionClass::control);
}

// bar.warp.sync mask
void warp_sync(DecodeContext& context) {
  context.finish(1);
  const Operand& mask = context.operand(0);
  const bool whole = mask.kind == Operand::Kind::integer && static_cast<uint32_t>(mask.bits) == full_mask;
  if (!whole) context.note_partial_synchronisation();
  const RegisterId members = context.read(mask, Type::u32);
  context.emit(execute_warp_sync, InstructionClass::control).a = members;
}

/// barrier and bar; `bar` is barrier.aligned.
void barrier(DecodeContext& context, bool aligned) {
  context.modifiers.accept("cta");
  if (context.modifiers.accept("warp")) {
    context.modifiers.accept("sync");
    return warp_sync(context);
  }
  aligned = context.modifiers.accept("aligned") || aligned;
  int64_t action = barrier_sync;
  size_t first = 0;
  if (context.modifiers.accept("red")) {
    const auto how = context.modifiers.accept_one({"popc", "and", "or"});
    if (!how) context.fail("expected .popc, .and or .or");
    action = *how == "popc" ? barrier_popc : *how == "and" ? barrier_and : barrier_or;
    const Type type = context.type();
    if (type != (action == barrier_popc ? Type::u32 : Type::pred)) context.fail("the result has another type");
    first = 1;
  } else if (context.modifiers.accept("arrive")) {
    action = barrier_arrive;
  } else if (!context.modifiers.accept("sync")) {
    context.fail("expected .sync, .arrive or .red");
  }
  context.finish_modifiers();
  const size_t numbers = context.operands() - (first == 1 ? 2 : 0);
  if (numbers < 1 || numbers > 2 || (action == barrier_arrive && numbers != 2))
    context.fail("wrong number of operands");
  const RegisterId number = context.read(context.operand(first), Type::u32);
  const RegisterId count = numbers == 2 ? context.read(context.operand(first + 1), Type::u32) : 0;
  if (numbers == 2) context.note_partial_synchronisation();
  RegisterId d = 0, vote = 0;
  bool negated = false;
  if (first == 1) {
    d = action == barrier_popc ? context.write(context.operand(0), Type::u32)
                               : context.write_predicate(context.operand(0));
    vote = context.read_predicate(context.operand(first + numbers), negated);
  }
  Operation& operation = context.emit(execute_barrier, InstructionClass::barrier);
  operation.d = d;
  operation.a = number;
  operation.b = count;
  operation.c = vote;
  operation.immediate = action;
  if (aligned) operation.immediate |= barrier_aligned;
  if (negated) operation.immediate |= barrier_not;
}

void bar(DecodeContext& context) {
  barrier(context, true);
}
void barrier_any(DecodeContext& context) {
  barrier(context, false);
}

/// Memory order is that of the host: only the checks look at what a fence says.
void emit_fence(DecodeContext& context, uint8_t order) {
  context.finish(0);
  context.note_partial_synchronisation();
  context.emit(execute_fence, InstructionClass::control).immediate = order;
}

// fence.proxy.tensormap::generic.release.scope    fence.proxy.tensormap::generic.acquire.scope [map], 128
void tensor_map_fence(DecodeContext& context) {
  const auto order = context.modifiers.accept_one({"release", "acquire"});
  if (!order) context.fail("expected .release or .acquire");
  if (!context.modifiers.accept_one({"cta", "cluster", "gpu", "sys"})) context.fail("expected a scope");
  const bool acquires = *order == "acquire";
  context.finish(acquires ? 2 : 0);
  if (acquires) {
    context.address(context.operand(0), ptx::Space::generic);
    if (context.literal(context.operand(1)) != 128) context.fail("expected 128");
  }
  context.emit(execute_nothing, InstructionClass::control);
}

/// {fence,membar}.proxy.kind puts a thread's own accesses through one proxy in order with those through another, and
/// nothing between threads. Copies in bulk go through the asynchronous proxy, all else through the generic one.
void proxy_fence(DecodeContext& context) {
  if (context.modifiers.accept("tensormap::generic")) return tensor_map_fence(context);
  bool of_shared = false;
  if (context.modifiers.accept("async")) {  // of all memory, or of one state space
    const auto space = context.modifiers.space();
    if (space && *space != ptx::Space::global && *space != ptx::Space::shared)
      context.fail("expected .global or .shared");
    of_shared = space != ptx::Space::global;
  } else if (!context.modifiers.accept("alias")) {
    context.fail("this kind of proxy is not supported");
  }
  context.finish(0);
  context.emit(of_shared ? execute_proxy_fence : execute_nothing, InstructionClass::control);
}

// membar.{cta,gl,sys}
void membar(DecodeContext& context) {
  if (context.modifiers.accept("proxy")) return proxy_fence(context);
  const auto scope = context.modifiers.accept_one({"cta", "gl", "sys"});
  if (!scope) context.fail("expected .cta, .gl or .sys");
  emit_fence(context, order_acquires | order_releases | (*scope == "cta" ? order_in_block : 0));
}

// fence[.sem].scope   fence.mbarrier_init.release.cluster   fence.proxy.kind
void fence(DecodeContext& context) {
  if (context.modifiers.accept("proxy")) return proxy_fence(context);
  if (context.modifiers.accept("mbarrier_init")) {  // all threads of the one block that a cluster is see it at once
    if (!context.modifiers.accept("release") || !context.modifiers.accept("cluster")) {
      context.fail("expected .mbarrier_init.release.cluster");
    }
    context.finish(0);
    context.emit(execute_nothing, InstructionClass::control);
    return;
  }
  const auto meaning = context.modifiers.accept_one({"sc", "acq_rel", "acquire", "release"});
  const bool both = !meaning || *meaning == "sc" || *meaning == "acq_rel";
  const auto scope = context.modifiers.accept_one({"cta", "cluster", "gpu", "sys"});
  if (!scope) context.fail("expected .cta, .cluster, .gpu or .sys");
  uint8_t order = both ? order_acquires | order_releases : *meaning == "acquire" ? order_acquires : order_releases;
  if (is_block_scope(*scope)) order |= order_in_block;
  emit_fence(context, order);
}

// nanosleep.u32 nanoseconds
void nanosleep(DecodeContext& context) {
  if (context.type() != Type::u32) context.fail("expected .u32");
  context.finish(1);
  context.read(context.operand(0), Type::u32);
  context.emit(execute_sleep, InstructionClass::control);
  context.place_label(context.new_label());
}

constexpr DecoderEntry control_entries[] = {
    {"bra", bra},       {"brx", brx},     {"call", call},
    {"ret", ret},       {"exit", exit},   {"trap", trap},
    {"brkpt", trap},    {"bar", bar},     {"barrier", barrier_any},
    {"membar", membar}, {"fence", fence}, {"nanosleep", nanosleep},
};

}  // namespace

std::span<const DecoderEntry> control_decoders() {
  return control_entries;
}

}  // namespace kiln::emulator
