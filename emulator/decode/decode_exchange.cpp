// shfl, vote, match, redux, elect and activemask.
#include "decoders.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

void expect_sync(DecodeContext& context) {
  if (!context.modifiers.accept("sync")) context.fail("expected .sync (the older form was removed with sm_70)");
}

/// d or d|p
struct Results {
  const Operand* value = nullptr;
  const Operand* predicate = nullptr;
};
Results results(DecodeContext& context) {
  const Operand& operand = context.operand(0);
  if (operand.kind == Operand::Kind::pair) return {&operand.elements[0], &operand.elements[1]};
  return {&operand, nullptr};
}

// shfl.sync.mode.b32 d[|p], a, b, c, members
void shfl(DecodeContext& context) {
  expect_sync(context);
  const auto mode = context.modifiers.accept_one({"up", "down", "bfly", "idx"});
  if (!mode) context.fail("expected .up, .down, .bfly or .idx");
  const Type type = context.type();
  if (type != Type::b32) context.fail("expected .b32");
  context.finish(5);
  const RegisterId a = context.read(context.operand(1), type), b = context.read(context.operand(2), Type::u32);
  const RegisterId c = context.read(context.operand(3), Type::u32),
                   members = context.read(context.operand(4), Type::u32);
  const Results to = results(context);
  const RegisterId d = context.write(*to.value, type);
  const RegisterId p = to.predicate != nullptr ? context.write_predicate(*to.predicate) : 0;
  const Exchange op = *mode == "up"     ? Exchange::shfl_up
                      : *mode == "down" ? Exchange::shfl_down
                      : *mode == "bfly" ? Exchange::shfl_bfly
                                        : Exchange::shfl_idx;
  Operation& operation = context.emit(context.units().exchange(op, type), InstructionClass::warp_exchange);
  operation.d = d;
  operation.a = a;
  operation.b = b;
  operation.c = c;
  operation.list = {{ListEntry::Kind::read, members}, {ListEntry::Kind::write, p}};
}

// vote.sync.mode.{pred,b32} d, [!]a, members
void vote(DecodeContext& context) {
  expect_sync(context);
  const auto mode = context.modifiers.accept_one({"all", "any", "uni", "ballot"});
  if (!mode) context.fail("expected .all, .any, .uni or .ballot");
  const Type type = context.type();
  const bool ballot = *mode == "ballot";
  if (type != (ballot ? Type::b32 : Type::pred)) context.fail("the result has another type");
  context.finish(3);
  bool negated = false;
  const RegisterId a = context.read_predicate(context.operand(1), negated);
  const RegisterId members = context.read(context.operand(2), Type::u32);
  const RegisterId d = ballot ? context.write(context.operand(0), type) : context.write_predicate(context.operand(0));
  const Exchange op = ballot           ? Exchange::vote_ballot
                      : *mode == "all" ? Exchange::vote_all
                      : *mode == "any" ? Exchange::vote_any
                                       : Exchange::vote_uni;
  Operation& operation = context.emit(context.units().exchange(op, type), InstructionClass::warp_exchange);
  operation.d = d;
  operation.a = a;
  operation.b = members;
  operation.immediate = negated ? 1 : 0;
}

// match.{any,all}.sync.type d[|p], a, members
void match(DecodeContext& context) {
  expect_sync(context);
  const bool all = context.modifiers.accept("all");
  if (!all && !context.modifiers.accept("any")) context.fail("expected .any or .all");
  const Type type = context.type();
  context.finish(3);
  const RegisterId a = context.read(context.operand(1), type), members = context.read(context.operand(2), Type::u32);
  const Results to = results(context);
  if (!all && to.predicate != nullptr) context.fail("match.any has no predicate");
  const RegisterId d = context.write(*to.value, Type::b32);
  const RegisterId p = to.predicate != nullptr ? context.write_predicate(*to.predicate) : 0;
  const Exchange op = all ? Exchange::match_all : Exchange::match_any;
  Operation& operation = context.emit(context.units().exchange(op, type), InstructionClass::warp_exchange);
  operation.d = d;
  operation.a = a;
  operation.b = members;
  operation.c = p;
  operation.writes_c = true;
}

// redux.sync.op.type d, a, members    redux.sync.{min,max}[.abs][.NaN].f32 d, a, members
void redux(DecodeContext& context) {
  expect_sync(context);
  const auto word = context.modifiers.accept_one({"add", "min", "max", "and", "or", "xor"});
  if (!word) context.fail("expected an operation (.add, .min, ...)");
  const Type type = context.type();
  const bool bitwise = *word == "and" || *word == "or" || *word == "xor";
  const bool number = type == Type::u32 || type == Type::s32 || (type == Type::f32 && *word != "add");
  if (bitwise ? type != Type::b32 : !number) context.fail("this type is not supported");
  int64_t how = 0;
  if (type == Type::f32) {
    if (context.modifiers.accept("abs")) how |= redux_abs;
    if (context.modifiers.accept("NaN")) how |= redux_nan;
  }
  context.finish(3);
  const RegisterId a = context.read(context.operand(1), type), members = context.read(context.operand(2), Type::u32);
  const RegisterId d = context.write(context.operand(0), type);
  const Exchange op = *word == "add"   ? Exchange::redux_add
                      : *word == "min" ? Exchange::redux_min
                      : *word == "max" ? Exchange::redux_max
                      : *word == "and" ? Exchange::redux_and
                      : *word == "or"  ? Exchange::redux_or
                                       : Exchange::redux_xor;
  Operation& operation = context.emit(context.units().exchange(op, type), InstructionClass::warp_exchange);
  operation.d = d;
  operation.a = a;
  operation.b = members;
  operation.immediate = how;
}

// elect.sync d|p, members
void elect(DecodeContext& context) {
  expect_sync(context);
  context.finish(2);
  const RegisterId members = context.read(context.operand(1), Type::u32);
  const Results to = results(context);
  if (to.predicate == nullptr) context.fail("expected d|p");
  const RegisterId d = context.write(*to.value, Type::b32), p = context.write_predicate(*to.predicate);
  Operation& operation =
      context.emit(context.units().exchange(Exchange::elect, Type::b32), InstructionClass::warp_exchange);
  operation.d = d;
  operation.b = members;
  operation.c = p;
  operation.writes_c = true;
}

void activemask(DecodeContext& context) {
  const Type type = context.type();
  context.finish(1);
  const RegisterId d = context.write(context.operand(0), type);
  context.emit(context.units().exchange(Exchange::activemask, type), InstructionClass::warp_exchange).d = d;
}

constexpr DecoderEntry exchange_entries[] = {
    {"shfl", shfl}, {"vote", vote}, {"match", match}, {"redux", redux}, {"elect", elect}, {"activemask", activemask},
};

}  // namespace

std::span<const DecoderEntry> exchange_decoders() {
  return exchange_entries;
}

}  // namespace kiln::emulator
