// cp.async.bulk: copies between global and shared memory, of bytes in a row and of boxes of tensors.
#include <string>

#include "decoders.h"
#include "generic_address.h"
#include "kernel/tensor_map.h"
#include "scheduler/bulk_instructions.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

// The smallest access of a box to global memory, for the checks: boxes of 8-bit elements may begin in between.
constexpr uint32_t box_piece_bytes = 2;

/// The rank of a copy .tensor.1d to .tensor.5d; 0: it is of bytes in a row.
uint32_t take_rank(DecodeContext& context) {
  if (!context.modifiers.accept("tensor")) return 0;
  for (uint32_t rank = 1; rank <= TensorMap::max_rank; ++rank) {
    if (context.modifiers.accept(std::to_string(rank) + "d")) return rank;
  }
  context.fail("expected .1d to .5d");
}

/// The rank, and registers with the coordinates that stand behind a tensor map's address: [map, {x, y}].
std::vector<ListEntry> coordinates_of(DecodeContext& context, const Operand& operand, uint32_t rank) {
  if (operand.elements.size() != 1 || operand.elements[0].kind != Operand::Kind::vector ||
      operand.elements[0].elements.size() != rank) {
    context.fail(fmt::format("expected the address of a tensor map and {} coordinates", rank));
  }
  std::vector<ListEntry> list = {{ListEntry::Kind::number, rank}};
  for (const Operand& coordinate : operand.elements[0].elements) {
    list.push_back({ListEntry::Kind::read, context.read(coordinate, Type::s32)});
  }
  return list;
}

/// The operands of a copy without a cache policy, which is a hint.
size_t take_policy(DecodeContext& context) {
  const bool policy = context.modifiers.accept("L2::cache_hint");
  return context.operands() - (policy && context.operands() > 0 ? 1 : 0);
}

// cp.async.bulk.prefetch.L2.global [from], bytes    cp.async.bulk.prefetch.tensor.Nd.L2.global{.tile} [map, {...}]
void bulk_prefetch(DecodeContext& context) {
  const uint32_t rank = take_rank(context);
  const bool tensor = rank != 0;
  context.modifiers.accept("tile");
  if (!context.modifiers.accept("L2") || context.modifiers.space() != Space::global)
    context.fail("expected .L2.global");
  const size_t count = take_policy(context);
  context.finish_modifiers();
  if (count != (tensor ? 1 : 2)) context.fail("wrong number of operands");
  generic_address(context, context.operand(0), tensor ? Space::generic : Space::global);
  if (tensor) {
    coordinates_of(context, context.operand(0), rank);
  } else {
    context.read(context.operand(1), Type::u32);
  }
  context.emit(execute_nothing, InstructionClass::control);
}

// cp.async.bulk.wait_group{.read} count
void wait_group(DecodeContext& context) {
  context.modifiers.accept("read");
  context.finish(1);
  const int64_t pending = context.literal(context.operand(0));
  if (pending < 0) context.fail("expected a number of groups");
  context.emit(execute_bulk_wait, InstructionClass::control).immediate = pending;
}

// cp.async.bulk{.tensor.Nd}.shared::{cta,cluster}.global{.tile}.mbarrier::complete_tx::bytes [to], from, [mbarrier]
// cp.async.bulk{.tensor.Nd}.global.shared::cta{.tile}.bulk_group to, [from]
// where the side of global memory is [address] with a size behind the operands, or [map, {coordinates}].
void copy(DecodeContext& context) {
  const uint32_t rank = take_rank(context);
  const bool tensor = rank != 0;
  const auto to = context.modifiers.space(), from = context.modifiers.space();
  const bool loads = to == Space::shared && from == Space::global;
  if (!loads && (to != Space::global || from != Space::shared)) {
    context.fail("only copies between .shared and .global are supported");
  }
  if (tensor) context.modifiers.accept("tile");
  const std::string_view completion = loads ? "mbarrier::complete_tx::bytes" : "bulk_group";
  if (!context.modifiers.accept(completion)) context.fail(fmt::format("expected .{}", completion));
  const size_t count = take_policy(context);
  context.finish_modifiers();
  if (count != 2u + (loads ? 1 : 0) + (tensor ? 0 : 1)) context.fail("wrong number of operands");
  const Operand& global_side = context.operand(loads ? 1 : 0);
  const RegisterId shared = generic_address(context, context.operand(loads ? 0 : 1), Space::shared);
  const RegisterId global = generic_address(context, global_side, tensor ? Space::generic : Space::global);
  const RegisterId mbarrier = loads ? generic_address(context, context.operand(tensor ? 2 : 3), Space::shared) : 0;
  std::vector<ListEntry> list;
  if (tensor) {
    list = coordinates_of(context, global_side, rank);
  } else {
    list = {{ListEntry::Kind::number, 0}, {ListEntry::Kind::read, context.read(context.operand(2), Type::u32)}};
  }
  context.note_access(Space::shared, 8);  // of the mbarrier
  context.note_access(Space::global, tensor ? box_piece_bytes : 16);
  context.note_partial_synchronisation();
  Operation& operation = context.emit(loads ? bulk_to_shared : bulk_to_global,
                                      loads ? InstructionClass::global_load : InstructionClass::global_store);
  operation.a = shared;
  operation.b = global;
  operation.c = mbarrier;
  operation.list = std::move(list);
}

}  // namespace

void decode_bulk_copy(DecodeContext& context) {
  if (context.modifiers.accept("commit_group")) {
    context.finish(0);
    context.emit(execute_bulk_commit, InstructionClass::control);
  } else if (context.modifiers.accept("wait_group")) {
    wait_group(context);
  } else if (context.modifiers.accept("prefetch")) {
    bulk_prefetch(context);
  } else {
    copy(context);
  }
}

}  // namespace kiln::emulator
