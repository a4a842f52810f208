#include "scheduler/bulk_instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "checks/access.h"
#include "checks/fault.h"
#include "mbarrier_phases.h"
#include "scheduler/bulk_copies.h"
#include "scheduler/mbarrier_instructions.h"

namespace kiln::emulator {
namespace {

/// A lane's copy, and the instruction that issues it.
struct Issue {
  Warp& warp;
  const Instruction* i;
  uint32_t lane;
};

const Instruction* refuse(const Issue& issue, FaultKind kind, std::string_view why) {
  return fault_here(issue.warp, issue.i, kind, Mask{1} << issue.lane, why);
}

/// Looks at memory as at parts of the instruction's access, as long as the checks and counts can take at a time.
bool inspect_range(const Issue& issue, ptx::Space space, AccessKind kind, uint64_t address, uint64_t bytes) {
  constexpr uint64_t longest_part = 512;
  AccessRequest request;
  request.is_part = true;
  request.is_asynchronous = kind == AccessKind::store;
  request.is_bulk = true;
  request.space = space;
  request.kind = kind;
  request.lanes = Mask{1} << issue.lane;
  for (uint64_t end = address + bytes; address < end; address += request.bytes) {
    request.bytes = static_cast<uint32_t>(std::min(longest_part, end - address));
    request.address.fill(address);
    request.reach = {address, address};
    if (!inspect_access(issue.warp, issue.i, request)) return false;
  }
  return true;
}

/// The instruction counts as one access to global memory, whatever it copies.
bool count_instruction(Warp& warp, const Instruction* i) {
  AccessRequest request;
  request.lanes = 0;
  return inspect_access(warp, i, request);
}

bool is_aligned(const Issue& issue, std::string_view what, uint64_t value, uint64_t alignment) {
  if (value % alignment == 0) return true;
  refuse(issue, FaultKind::misaligned_address,
         fmt::format("{} of the copy is {:#x}, which is no multiple of {}", what, value, alignment));
  return false;
}

/// Bytes in shared memory start at what swizzling counts from.
uint64_t shared_offset(const BulkCopy& copy) {
  return copy.shared - reinterpret_cast<uint64_t>(copy.warp->block->shared);
}

/// The bytes that are read and written, without swizzling, which leaves each line of shared memory to itself.
template <bool inspected>
bool take_bytes(const Issue& issue, BulkCopy& copy) {
  const Instruction* const i = issue.i;
  copy.bytes = row<uint32_t>(issue.warp, issue.warp.lists[i->extra + 1])[issue.lane];
  copy.global = row<uint64_t>(issue.warp, i->b)[issue.lane];
  constexpr uint64_t alignment = 16;
  if (!is_aligned(issue, "the size", copy.bytes, alignment) ||
      !is_aligned(issue, "the address in shared memory", shared_offset(copy), alignment) ||
      !is_aligned(issue, "the address in global memory", copy.global, alignment)) {
    return false;
  }
  if constexpr (!inspected) return true;
  return inspect_range(issue, ptx::Space::generic, copy.to_shared ? AccessKind::load : AccessKind::store, copy.global,
                       copy.bytes);
}

template <bool inspected>
bool take_box(const Issue& issue, BulkCopy& copy) {
  const Instruction* const i = issue.i;
  const uint32_t rank = issue.warp.lists[i->extra];
  const uint64_t map_address = row<uint64_t>(issue.warp, i->b)[issue.lane];
  if (!is_aligned(issue, "the tensor map", map_address, tensor_map_alignment)) return false;
  if constexpr (inspected) {
    if (!inspect_range(issue, ptx::Space::generic, AccessKind::load, map_address, tensor_map_bytes)) return false;
  }
  TensorMap& map = copy.map.emplace();
  std::memcpy(&map, reinterpret_cast<const void*>(map_address), sizeof map);
  if (map.mark != TensorMap::written) {
    refuse(issue, FaultKind::illegal_instruction,
           fmt::format("the {} bytes at {:#x} are no tensor map: cuTensorMapEncodeTiled has not written them",
                       tensor_map_bytes, map_address));
    return false;
  }
  if (map.rank != rank) {
    refuse(issue, FaultKind::illegal_instruction,
           fmt::format("the tensor map is of {} dimensions, and the copy of {}", map.rank, rank));
    return false;
  }
  for (uint32_t d = 0; d < rank; ++d) {
    copy.corner[d] = row<int32_t>(issue.warp, issue.warp.lists[i->extra + 1 + d])[issue.lane];
  }
  copy.bytes = map.box_bytes();
  constexpr uint64_t alignment = 128;
  if (!is_aligned(issue, "the address in shared memory", shared_offset(copy), alignment)) return false;
  if constexpr (!inspected) return true;
  BoxRows rows(map, copy.corner);
  for (BoxRow row; rows.next(row);) {
    if (!inspect_range(issue, ptx::Space::generic, copy.to_shared ? AccessKind::load : AccessKind::store, row.address,
                       row.end - row.begin)) {
      return false;
    }
  }
  return true;
}

/// False if there is a fault.
template <bool to_shared, bool inspected>
bool issue_copy(const Issue& issue) {
  Block& block = *issue.warp.block;
  BulkCopy copy;
  copy.at = issue.i;
  copy.warp = &issue.warp;
  copy.lane = issue.lane;
  copy.to_shared = to_shared;
  copy.shared = row<uint64_t>(issue.warp, issue.i->a)[issue.lane];
  const bool of_box = issue.warp.lists[issue.i->extra] != 0;
  if (!(of_box ? take_box<inspected>(issue, copy) : take_bytes<inspected>(issue, copy))) return false;
  if constexpr (inspected) {
    if (!inspect_range(issue, ptx::Space::shared, to_shared ? AccessKind::store : AccessKind::load, copy.shared,
                       copy.bytes)) {
      return false;
    }
  }
  if constexpr (to_shared) {
    const uint64_t address = row<uint64_t>(issue.warp, issue.i->c)[issue.lane];
    uint64_t offset = 0;
    if (inspected && !inspect_range(issue, ptx::Space::shared, AccessKind::atomic, address, 8)) return false;
    if (find_mbarrier(issue.warp, issue.i, issue.lane, address, offset) == nullptr) return false;
    if (copy.bytes == 0) return true;
    block.bulk_copies->issue(copy, offset);
    block.mbarriers->note_progress();
    settle_mbarrier(block, offset, false);
  } else {
    block.bulk_copies->issue(copy);
  }
  return true;
}

template <bool to_shared, bool inspected>
const Instruction* copy_in_bulk(Warp& warp, const Instruction* i) {
  if (inspected && !count_instruction(warp, i)) return nullptr;
  for (Mask rest = guarded(warp, i); rest != 0; rest &= rest - 1) {
    if (!issue_copy<to_shared, inspected>({warp, i, static_cast<uint32_t>(std::countr_zero(rest))})) return nullptr;
  }
  return i + 1;
}

}  // namespace

const HandlerPair bulk_to_shared = {copy_in_bulk<true, false>, copy_in_bulk<true, true>};
const HandlerPair bulk_to_global = {copy_in_bulk<false, false>, copy_in_bulk<false, true>};

const Instruction* execute_bulk_commit(Warp& warp, const Instruction* i) {
  warp.block->bulk_copies->commit(warp, guarded(warp, i));
  return i + 1;
}

const Instruction* execute_bulk_wait(Warp& warp, const Instruction* i) {
  warp.block->bulk_copies->wait(warp, guarded(warp, i), static_cast<uint32_t>(i->immediate));
  return i + 1;
}

}  // namespace kiln::emulator
