// mbarrier: barriers in shared memory whose phases threads arrive at, and copies in bulk.
#include "decoders.h"
#include "generic_address.h"
#include "scheduler/mbarrier_instructions.h"

namespace kiln::emulator {
namespace {

using ptx::Space;
using ptx::Type;

/// {.sem}{.scope}: whether the order is `ordered`, which it is unless .relaxed is said.
bool take_order(DecodeContext& context, std::string_view ordered) {
  const auto order = context.modifiers.accept_one({ordered, "relaxed"});
  if (order && !context.modifiers.accept_one({"cta", "cluster"})) context.fail("expected .cta or .cluster");
  return !order || *order == ordered;
}

/// {.shared{::cta, ::cluster}}.b64
Space take_space(DecodeContext& context) {
  const Space space = space_among(context, {Space::shared});
  if (context.type() != Type::b64) context.fail("expected .b64");
  return space;
}

Operation& emit(DecodeContext& context, const HandlerPair& handlers, RegisterId address) {
  context.note_access(Space::shared, 8);
  context.note_partial_synchronisation();
  Operation& operation = context.emit(handlers, InstructionClass::shared_atomic);
  operation.a = address;
  return operation;
}

// mbarrier.init [a], count
void init(DecodeContext& context) {
  const Space space = take_space(context);
  context.finish(2);
  const RegisterId address = generic_address(context, context.operand(0), space);
  const RegisterId count = context.read(context.operand(1), Type::u32);
  emit(context, mbarrier_init, address).b = count;
}

// mbarrier.inval [a]
void inval(DecodeContext& context) {
  const Space space = take_space(context);
  context.finish(1);
  emit(context, mbarrier_invalidate, generic_address(context, context.operand(0), space));
}

// mbarrier.{arrive,arrive_drop}{.noComplete}{.sem.scope} state, [a]{, count}
// mbarrier.{arrive,arrive_drop}.expect_tx{.sem.scope} state, [a], bytes
void arrive(DecodeContext& context, bool drops) {
  const bool expects = context.modifiers.accept("expect_tx");
  const bool no_complete = context.modifiers.accept("noComplete");
  const bool releases = take_order(context, "release");
  const Space space = take_space(context);
  const bool two = context.operands() == 2 && !expects && !no_complete;
  context.finish(two ? 2 : 3);
  const RegisterId state = context.write(context.operand(0), Type::b64);
  const RegisterId address = generic_address(context, context.operand(1), space);
  const RegisterId number = two ? 0 : context.read(context.operand(2), Type::u32);
  const RegisterId once = context.constant(1, RegisterClass::b32);
  Operation& operation = emit(context, mbarrier_arrive, address);
  operation.d = state;
  operation.b = two || expects ? once : number;
  operation.c = expects ? number : 0;
  if (drops) operation.immediate |= arrival_drops;
  if (no_complete) operation.immediate |= arrival_no_complete;
  if (releases) operation.immediate |= arrival_releases;
}

// mbarrier.{expect_tx,complete_tx}{.relaxed.scope} [a], bytes
void transact(DecodeContext& context, bool complete) {
  take_order(context, "relaxed");
  const Space space = take_space(context);
  context.finish(2);
  const RegisterId address = generic_address(context, context.operand(0), space);
  const RegisterId bytes = context.read(context.operand(1), Type::u32);
  Operation& operation = emit(context, mbarrier_transact, address);
  operation.b = bytes;
  operation.immediate = complete ? 1 : 0;
}

// mbarrier.{test_wait,try_wait}{.sem.scope} p, [a], state{, time}
// mbarrier.{test_wait,try_wait}.parity{.sem.scope} p, [a], parity{, time}
void wait(DecodeContext& context, bool has_time) {
  const bool parity = context.modifiers.accept("parity");
  const bool acquires = take_order(context, "acquire");
  const Space space = take_space(context);
  const bool timed = has_time && context.operands() == 4;
  context.finish(timed ? 4 : 3);
  const RegisterId over = context.write_predicate(context.operand(0));
  const RegisterId address = generic_address(context, context.operand(1), space);
  const RegisterId phase = context.read(context.operand(2), parity ? Type::u32 : Type::b64);
  if (timed) context.read(context.operand(3), Type::u32);
  Operation& operation = emit(context, mbarrier_wait, address);
  operation.d = over;
  operation.b = phase;
  if (parity) operation.immediate |= wait_by_parity;
  if (acquires) operation.immediate |= wait_acquires;
  context.place_label(context.new_label());
}

// mbarrier.pending_count.b64 count, state
void pending_count(DecodeContext& context) {
  if (context.type() != Type::b64) context.fail("expected .b64");
  context.finish(2);
  const RegisterId count = context.write(context.operand(0), Type::u32);
  const RegisterId state = context.read(context.operand(1), Type::b64);
  Operation& operation = context.emit(execute_mbarrier_pending_count, InstructionClass::integer);
  operation.d = count;
  operation.a = state;
}

void mbarrier(DecodeContext& context) {
  Modifiers& modifiers = context.modifiers;
  if (modifiers.accept("init")) return init(context);
  if (modifiers.accept("inval")) return inval(context);
  if (modifiers.accept("arrive")) return arrive(context, false);
  if (modifiers.accept("arrive_drop")) return arrive(context, true);
  if (modifiers.accept("expect_tx")) return transact(context, false);
  if (modifiers.accept("complete_tx")) return transact(context, true);
  if (modifiers.accept("test_wait")) return wait(context, false);
  if (modifiers.accept("try_wait")) return wait(context, true);
  if (modifiers.accept("pending_count")) return pending_count(context);
  context.fail("this operation on an mbarrier is not known");
}

constexpr DecoderEntry mbarrier_entries[] = {{"mbarrier", mbarrier}};

}  // namespace

std::span<const DecoderEntry> mbarrier_decoders() {
  return mbarrier_entries;
}

}  // namespace kiln::emulator
