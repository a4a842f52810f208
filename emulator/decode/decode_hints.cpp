// Instructions that change nothing a kernel can observe here: cache hints, register budgets, dependent launches,
// profiler events. Their words and operands are held against the ISA all the same, so that a misspelt one is refused.
#include <initializer_list>

#include "decoders.h"
#include "generic_address.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

using ptx::Space;
using ptx::Type;

void nothing(DecodeContext& context) {
  context.emit(execute_nothing, InstructionClass::control);
}

void expect_literal(DecodeContext& context, size_t index, int64_t value) {
  if (context.literal(context.operand(index)) != value) context.fail(fmt::format("expected {}", value));
}

// prefetch{.space}.{L1,L2} [a]   prefetch.global.L2::{evict_last,evict_normal} [a]   prefetch{.space}.tensormap [a]
void prefetch(DecodeContext& context) {
  const bool map = context.modifiers.accept("tensormap");
  const Space space =
      map ? space_among(context, {Space::constant, Space::param}) : space_among(context, {Space::global, Space::local});
  const bool evicts = !map && context.modifiers.accept_one({"L2::evict_last", "L2::evict_normal"}).has_value();
  if (evicts && space != Space::global) context.fail("expected .global");
  if (!map && !evicts && !context.modifiers.accept_one({"L1", "L2"})) context.fail("expected .L1 or .L2");
  context.finish(1);
  context.address(context.operand(0), space);
  nothing(context);
}

// prefetchu.L1 [a]
void prefetchu(DecodeContext& context) {
  if (!context.modifiers.accept("L1")) context.fail("expected .L1");
  context.finish(1);
  context.address(context.operand(0), Space::generic);
  nothing(context);
}

/// discard{.global}.L2 [a], 128   applypriority{.global}.L2::evict_normal [a], 128
void cache_line(DecodeContext& context, std::string_view level) {
  const Space space = space_among(context, {Space::global});
  if (!context.modifiers.accept(level)) context.fail(fmt::format("expected .{}", level));
  context.finish(2);
  context.address(context.operand(0), space);
  expect_literal(context, 1, 128);
  nothing(context);
}

void discard(DecodeContext& context) {
  cache_line(context, "L2");
}
void applypriority(DecodeContext& context) {
  cache_line(context, "L2::evict_normal");
}

// createpolicy.fractional.L2::primary{.L2::secondary}.b64 d{, fraction}
// createpolicy.range{.global}.L2::primary{.L2::secondary}.b64 d, [a], primary bytes, bytes
// createpolicy.cvt.L2.b64 d, access property
void createpolicy(DecodeContext& context) {
  const auto kind = context.modifiers.accept_one({"fractional", "range", "cvt"});
  if (!kind) context.fail("expected .fractional, .range or .cvt");
  const Space space = *kind == "range" ? space_among(context, {Space::global}) : Space::generic;
  if (*kind == "cvt") {
    if (!context.modifiers.accept("L2")) context.fail("expected .L2");
  } else {
    const std::initializer_list<std::string_view> priorities = {"L2::evict_last", "L2::evict_normal", "L2::evict_first",
                                                                "L2::evict_unchanged"};
    if (!context.modifiers.accept_one(priorities)) context.fail("expected an eviction priority");
    context.modifiers.accept_one(priorities);
  }
  if (context.type() != Type::b64) context.fail("expected .b64");
  const bool fraction = *kind == "fractional" && context.operands() == 2;
  context.finish(*kind == "range" ? 4 : *kind == "cvt" || fraction ? 2 : 1);
  if (*kind == "range") {
    context.address(context.operand(1), space);
    context.read(context.operand(2), Type::b32);
    context.read(context.operand(3), Type::b32);
  } else if (context.operands() == 2) {
    context.read(context.operand(1), fraction ? Type::f32 : Type::b64);
  }
  // A policy is a number that nobody looks at.
  const RegisterId d = context.write(context.operand(0), Type::b64);
  const RegisterId zero = context.constant(0, RegisterClass::b64);
  Operation& operation = context.emit(context.units().integer(IntegerOp::move, Type::b64), InstructionClass::integer);
  operation.d = d;
  operation.a = zero;
}

// setmaxnreg.{inc,dec}.sync.aligned.u32 registers
void setmaxnreg(DecodeContext& context) {
  if (!context.modifiers.accept_one({"inc", "dec"})) context.fail("expected .inc or .dec");
  for (const std::string_view word : {"sync", "aligned", "u32"}) {
    if (!context.modifiers.accept(word)) context.fail(fmt::format("expected .{}", word));
  }
  context.finish(1);
  const int64_t registers = context.literal(context.operand(0));
  if (registers < 24 || registers > 256 || registers % 8 != 0) {
    context.fail("expected a multiple of 8 from 24 to 256");
  }
  nothing(context);
}

// griddepcontrol.{launch_dependents,wait}: a launch begins when those before it have ended.
void griddepcontrol(DecodeContext& context) {
  if (!context.modifiers.accept_one({"launch_dependents", "wait"})) {
    context.fail("expected .launch_dependents or .wait");
  }
  context.finish(0);
  nothing(context);
}

// pmevent{.mask} number
void pmevent(DecodeContext& context) {
  context.modifiers.accept("mask");
  context.finish(1);
  context.literal(context.operand(0));
  nothing(context);
}

constexpr DecoderEntry hints_entries[] = {
    {"prefetch", prefetch},
    {"prefetchu", prefetchu},
    {"discard", discard},
    {"applypriority", applypriority},
    {"createpolicy", createpolicy},
    {"setmaxnreg", setmaxnreg},
    {"griddepcontrol", griddepcontrol},
    {"pmevent", pmevent},
};

}  // namespace

std::span<const DecoderEntry> hint_decoders() {
  return hints_entries;
}

}  // namespace kiln::emulator
