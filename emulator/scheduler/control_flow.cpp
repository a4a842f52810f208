#include "scheduler/control_flow.h"

#include <atomic>
#include <bit>
#include <chrono>

#include "async_completion.h"
#include "barriers.h"
#include "checks/fault.h"
#include "checks/strict.h"
#include "ptx/type.h"
#include "scheduler/bulk_copies.h"
#include "scheduler/divergence.h"
#include "warp/fragments.h"

namespace kiln::emulator {

const Instruction* execute_label(Warp& warp, const Instruction* i) {
  if (warp.budget < 0 || reinterpret_cast<uintptr_t>(i) >= warp.merge_at) [[unlikely]] {
    const Instruction* const next = meet_at_label(warp, i);
    if (next != i) return next;
  }
  ++warp.executions[i->d];
  // A whole warp is asked for first: without the instruction, which not every x86-64 has, counting bits is a call.
  warp.active_lanes[i->d] += warp.active == full_mask ? warp_lanes : static_cast<uint64_t>(std::popcount(warp.active));
  warp.budget -= i->a;
  return i + 1;
}

const Instruction* execute_branch(Warp& warp, const Instruction* i) {
  const Mask taken = guarded(warp, i);
  const Mask others = warp.active & ~taken;
  const Instruction* const target = i + i->immediate;
  if (others == 0) return target;
  if (taken == 0) return i + 1;
  if (target > i) {
    add_ready(warp, target, taken);
    warp.active = others;
    return i + 1;
  }
  add_ready(warp, i + 1, others);
  warp.active = taken;
  return target;
}

const Instruction* execute_indexed_branch(Warp& warp, const Instruction* i) {
  const Mask lanes = guarded(warp, i);
  const uint32_t* const index = row<uint32_t>(warp, i->a);
  for (Mask rest = lanes; rest != 0;) {
    const uint32_t chosen = index[std::countr_zero(rest)];
    if (chosen >= i->c) {
      return fault_here(warp, i, FaultKind::illegal_instruction, rest & -rest, "the branch table has no such entry");
    }
    Mask same = 0;
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
      if ((rest >> lane & 1) != 0 && index[lane] == chosen) same |= Mask{1} << lane;
    }
    add_ready(warp, i + static_cast<int32_t>(warp.lists[i->extra + chosen]), same);
    rest &= ~same;
  }
  return leave(warp, i, lanes);
}

const Instruction* execute_exit(Warp& warp, const Instruction* i) {
  const Mask lanes = guarded(warp, i);
  if (lanes == 0) return i + 1;
  complete_all_copies(warp, lanes);
  warp.block->bulk_copies->finish(warp, lanes);
  warp.live &= ~lanes;
  warp.block->live_threads -= static_cast<uint32_t>(std::popcount(lanes));
  warp.active &= ~lanes;
  if (warp.block->live_threads != 0) release_complete_barriers(*warp.block);
  return warp.active != 0 ? i + 1 : next_fragment(warp);
}

const Instruction* execute_trap(Warp& warp, const Instruction* i) {
  const Mask lanes = guarded(warp, i);
  return lanes == 0 ? i + 1 : fault_here(warp, i, FaultKind::assertion, lanes, "the kernel stopped itself");
}

const Instruction* execute_nothing(Warp&, const Instruction* i) {
  return i + 1;
}

namespace {

/// The lanes have all their members with them; lanes with different masks do not meet.
void note_meeting(const Warp& warp, const uint32_t* members, Mask lanes) {
  for (Mask rest = lanes; rest != 0;) {
    const uint32_t mask = members[std::countr_zero(rest)];
    Mask same = 0;
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) same |= static_cast<Mask>(members[lane] == mask) << lane;
    warp.block->strict->warp_met(warp, same & rest);
    rest &= ~same;
  }
}

}  // namespace

const Instruction* execute_warp_sync(Warp& warp, const Instruction* i) {
  const Mask lanes = guarded(warp, i);
  if (lanes == 0) return i + 1;
  const uint32_t* const masks = row<uint32_t>(warp, i->a);
  const Mask members = masks[std::countr_zero(lanes)];
  if ((members & warp.live & ~lanes) == 0) {
    if (warp.block->strict != nullptr) note_meeting(warp, masks, lanes);
    return i + 1;
  }
  Fragment fragment;
  fragment.at = i + 1;
  fragment.lanes = lanes;
  fragment.wait = Wait::warp_sync;
  fragment.members = members;
  add_waiting(warp, fragment);
  return leave(warp, i, lanes);
}

// Fences of one launch are ordered by changing one variable, and what a host thread did before its own happened before
// what others do after theirs. That is as strong as std::atomic_thread_fence, and the thread sanitizer understands it.
const Instruction* execute_fence(Warp& warp, const Instruction* i) {
  warp.block->fences->fetch_add(1, std::memory_order_seq_cst);
  if (warp.block->strict != nullptr) warp.block->strict->fence(warp, i, guarded(warp, i));
  return i + 1;
}

const Instruction* execute_proxy_fence(Warp& warp, const Instruction* i) {
  if (warp.block->strict != nullptr) warp.block->strict->proxy_fence(warp, guarded(warp, i));
  return i + 1;
}

const Instruction* execute_sleep(Warp& warp, const Instruction* i) {
  if (guarded(warp, i) == 0) return i + 1;
  add_ready(warp, i + 1, warp.active);
  warp.active = 0;
  return nullptr;
}

const Instruction* execute_commit_group(Warp& warp, const Instruction* i) {
  warp.copies.commit(guarded(warp, i));
  return i + 1;
}

const Instruction* execute_wait_group(Warp& warp, const Instruction* i) {
  if (i->immediate < 0) {
    complete_all_copies(warp, guarded(warp, i));
  } else {
    complete_copies(warp, guarded(warp, i), static_cast<uint32_t>(i->immediate));
  }
  return i + 1;
}

namespace {

template <class T>
const Instruction* clock(Warp& warp, const Instruction* i) {
  uint64_t now = warp.block->issued + static_cast<uint64_t>(warp.block->slice - warp.budget);
  if ((i->immediate & clock_nanoseconds) != 0) {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    now = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }
  if ((i->immediate & clock_high) != 0) now >>= 32;
  for (Mask rest = guarded(warp, i); rest != 0; rest &= rest - 1) {
    row<T>(warp, i->d)[std::countr_zero(rest)] = static_cast<T>(now);
  }
  return i + 1;
}

bool lies_in(const Warp& warp, uint64_t address, ptx::Space space) {
  const Block& block = *warp.block;
  const auto within = [&](const std::byte* begin, uint64_t bytes) {
    const auto first = reinterpret_cast<uint64_t>(begin);
    return address >= first && address < first + bytes;
  };
  const bool shared = within(block.shared, block.shared_bytes);
  const bool local = within(block.local, local_bytes(block));
  const bool constant = within(block.constants.data(), block.constants.size());
  switch (space) {
    case ptx::Space::shared:
      return shared;
    case ptx::Space::local:
      return local;
    case ptx::Space::constant:
      return constant;
    case ptx::Space::param:
      return within(block.parameters, block.parameter_bytes);
    default:
      return !shared && !local && !constant;  // what parameters are in is a part of global memory
  }
}

}  // namespace

const Instruction* execute_clock_32(Warp& warp, const Instruction* i) {
  return clock<uint32_t>(warp, i);
}
const Instruction* execute_clock_64(Warp& warp, const Instruction* i) {
  return clock<uint64_t>(warp, i);
}

const Instruction* execute_is_space(Warp& warp, const Instruction* i) {
  const uint64_t* const address = row<uint64_t>(warp, i->a);
  Mask& d = *row<Mask>(warp, i->d);
  for (Mask rest = guarded(warp, i); rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Mask bit = Mask{1} << lane;
    d = lies_in(warp, address[lane], static_cast<ptx::Space>(i->immediate)) ? d | bit : d & ~bit;
  }
  return i + 1;
}

}  // namespace kiln::emulator
