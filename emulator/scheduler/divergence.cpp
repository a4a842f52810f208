#include "scheduler/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "checks/fault.h"
#include "checks/strict.h"
#include "warp/fragments.h"

namespace kiln::emulator {
namespace {

void remove(Warp& warp, uint32_t index) {
  warp.fragments[index] = warp.fragments[--warp.fragment_count];
}

/// Moves the lanes of every ready fragment at `at` into the running one.
void absorb_ready(Warp& warp, const Instruction* at) {
  for (uint32_t k = warp.fragment_count; k-- > 0;) {
    if (warp.fragments[k].wait != Wait::none || warp.fragments[k].at != at) continue;
    warp.active |= warp.fragments[k].lanes;
    remove(warp, k);
  }
}

/// Ends the waits that lanes which have exited can no longer fulfil, and complete bar.warp.sync groups.
void settle_waits(Warp& warp) {
  for (uint32_t k = 0; k < warp.fragment_count; ++k) {
    Fragment& fragment = warp.fragments[k];
    if (fragment.wait == Wait::converge) {
      if ((fragment.members & warp.live & ~fragment.lanes) == 0) fragment.wait = Wait::none;
    } else if (fragment.wait == Wait::warp_sync) {
      Mask arrived = 0;
      for (uint32_t n = 0; n < warp.fragment_count; ++n) {
        const Fragment& other = warp.fragments[n];
        if (other.wait == Wait::warp_sync && other.members == fragment.members) arrived |= other.lanes;
      }
      if ((fragment.members & warp.live & ~arrived) != 0) continue;
      if (warp.block->strict != nullptr) warp.block->strict->warp_met(warp, arrived);
      for (const Mask members = fragment.members; Fragment & other : warp.fragments) {
        if (&other - warp.fragments.data() >= warp.fragment_count) break;
        if (other.wait == Wait::warp_sync && other.members == members) other.wait = Wait::none;
      }
    }
  }
}

/// Runs the ready fragment that has waited longest, whatever its place.
const Instruction* next_in_turn(Warp& warp) {
  uint32_t chosen = warp.fragment_count;
  for (uint32_t k = 0; k < warp.fragment_count; ++k) {
    if (warp.fragments[k].wait != Wait::none) continue;
    if (chosen == warp.fragment_count || warp.fragments[k].last_run < warp.fragments[chosen].last_run) chosen = k;
  }
  if (chosen == warp.fragment_count) return nullptr;
  const Instruction* const at = warp.fragments[chosen].at;
  absorb_ready(warp, at);
  refresh_merge_point(warp);
  return at;
}

bool any_ready(const Warp& warp) {
  return std::any_of(warp.fragments.begin(), warp.fragments.begin() + warp.fragment_count,
                     [](const Fragment& fragment) { return fragment.wait == Wait::none; });
}

/// The budget is used up: looks at the limit, then gives the other warps and the other fragments a turn.
const Instruction* end_of_slice(Warp& warp, const Instruction* i) {
  const uint64_t limit = warp.block->launch->instruction_limit;
  if (limit != 0 && account(warp) > limit) return timeout_fault(warp, i);
  ++warp.slices;
  warp.fair = !warp.fair && any_ready(warp);
  add_ready(warp, i, warp.active);
  warp.active = 0;
  return nullptr;
}

}  // namespace

const Instruction* next_fragment(Warp& warp) {
  warp.active = 0;
  settle_waits(warp);
  refresh_merge_point(warp);
  if (warp.merge_at == nothing_to_merge) return nullptr;
  const auto* const at = reinterpret_cast<const Instruction*>(warp.merge_at);
  absorb_ready(warp, at);
  refresh_merge_point(warp);
  return at;
}

const Instruction* resume(Warp& warp) {
  if (!warp.fair) return next_fragment(warp);
  settle_waits(warp);
  return next_in_turn(warp);
}

uint64_t account(Warp& warp) {
  Block& block = *warp.block;
  block.issued += static_cast<uint64_t>(block.slice - warp.budget);
  warp.budget = block.slice;
  return block.issued;
}

const Instruction* leave(Warp& warp, const Instruction* i, Mask lanes) {
  warp.active &= ~lanes;
  return warp.active != 0 ? i + 1 : next_fragment(warp);
}

namespace {

/// Brings the lanes that wait at `i`, or are about to execute it, into the running fragment. False if there are none.
bool join_at(Warp& warp, const Instruction* i) {
  Mask joined = 0;
  for (uint32_t k = warp.fragment_count; k-- > 0;) {
    const Fragment& other = warp.fragments[k];
    if (other.at != i || (other.wait != Wait::converge && other.wait != Wait::none)) continue;
    joined |= other.lanes;
    remove(warp, k);
  }
  refresh_merge_point(warp);
  warp.active |= joined;
  return joined != 0;
}

void wait_at(Warp& warp, const Instruction* i, Mask lanes, Mask members) {
  Fragment fragment;
  fragment.at = i;
  fragment.lanes = lanes;
  fragment.wait = Wait::converge;
  fragment.members = members;
  add_waiting(warp, fragment);
}

}  // namespace

const Instruction* converge(Warp& warp, const Instruction* i, Mask lanes, Mask members) {
  if (join_at(warp, i)) return i;
  wait_at(warp, i, lanes, members);
  return leave(warp, i, lanes);
}

const Instruction* wait_for_members(Warp& warp, const Instruction* i, Mask lanes, Mask waiting,
                                    const uint32_t* members) {
  const Mask done = lanes & ~waiting;
  if (done != 0) {  // must not come here again with those that join
    add_ready(warp, i + 1, warp.active & ~waiting);
    warp.active = waiting;
  }
  if (join_at(warp, i)) return i;
  for (Mask open = waiting, group = 0; open != 0; open &= ~group) {
    const uint32_t mask = members[std::countr_zero(open)];
    group = 0;
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) group |= static_cast<Mask>(members[lane] == mask) << lane;
    group &= open;
    wait_at(warp, i, group, mask);
  }
  return leave(warp, i, waiting);
}

const Instruction* gather_warp(Warp& warp, const Instruction* i, Mask lanes) {
  if ((warp.live & ~lanes) != 0) return converge(warp, i, lanes, warp.live);
  return fault_here(warp, i, FaultKind::illegal_instruction, lanes,
                    fmt::format("all {} threads of a warp must execute this together, and lanes {:#010x} of this one "
                                "have left the kernel or were never there",
                                warp_lanes, ~lanes));
}

const Instruction* meet_at_label(Warp& warp, const Instruction* i) {
  if (warp.budget < 0) return end_of_slice(warp, i);
  absorb_ready(warp, i);
  refresh_merge_point(warp);
  if (warp.merge_at > place(i) || warp.fair) return i;
  add_ready(warp, i, warp.active);
  return next_fragment(warp);
}

}  // namespace kiln::emulator
