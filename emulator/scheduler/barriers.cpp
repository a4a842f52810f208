#include "barriers.h"

#include <fmt/format.h>

#include <bit>

#include "checks/fault.h"
#include "checks/strict.h"
#include "scheduler/control_flow.h"
#include "scheduler/divergence.h"
#include "warp/fragments.h"

namespace kiln::emulator {
namespace {

bool complete(const Block& block, const Barrier& barrier) {
  return barrier.in_use && barrier.arrived >= (barrier.expected != 0 ? barrier.expected : block.live_threads);
}

/// Gives the threads that waited in bar.red their result.
void deliver(Warp& warp, const Fragment& fragment, const Barrier& barrier) {
  const Instruction* const i = fragment.at - 1;
  const int64_t action = i->immediate & barrier_action;
  if (action == barrier_sync) return;
  if (action == barrier_popc) {
    for (Mask rest = fragment.lanes; rest != 0; rest &= rest - 1) {
      row<uint32_t>(warp, i->d)[std::countr_zero(rest)] = barrier.votes;
    }
    return;
  }
  const bool holds = action == barrier_and ? barrier.votes == barrier.voters : barrier.votes != 0;
  Mask& result = *row<Mask>(warp, i->d);
  result = (result & ~fragment.lanes) | (holds ? fragment.lanes : 0);
}

void release(Block& block, uint8_t number) {
  if (block.strict != nullptr) block.strict->barrier_complete(block, number);
  for (Warp& warp : block.warps) {
    for (uint32_t k = 0; k < warp.fragment_count; ++k) {
      Fragment& fragment = warp.fragments[k];
      if (fragment.wait != Wait::barrier || fragment.barrier != number) continue;
      deliver(warp, fragment, block.barriers[number]);
      fragment.wait = Wait::none;
    }
    refresh_merge_point(warp);
  }
  block.barriers[number] = Barrier{};
}

void vote(Warp& warp, const Instruction* i, Mask lanes, Barrier& barrier) {
  if ((i->immediate & barrier_action) < barrier_popc) return;
  Mask predicate = *row<Mask>(warp, i->c);
  if ((i->immediate & barrier_not) != 0) predicate = ~predicate;
  barrier.votes += static_cast<uint32_t>(std::popcount(predicate & lanes));
  barrier.voters += static_cast<uint32_t>(std::popcount(lanes));
}

}  // namespace

void release_complete_barriers(Block& block) {
  for (size_t number = 0; number < block.barriers.size(); ++number) {
    if (complete(block, block.barriers[number])) release(block, static_cast<uint8_t>(number));
  }
}

const Instruction* execute_barrier(Warp& warp, const Instruction* i) {
  const Mask lanes = guarded(warp, i);
  if (lanes == 0) return i + 1;
  Block& block = *warp.block;
  if ((i->immediate & barrier_aligned) != 0 && (warp.live & ~lanes) != 0) {
    if (block.strict != nullptr && block.strict->barrier_diverged(warp, i, lanes) == nullptr) return nullptr;
    return converge(warp, i, lanes, warp.live);
  }
  const int first = std::countr_zero(lanes);
  const uint32_t number = row<uint32_t>(warp, i->a)[first];
  const uint32_t count = i->b != 0 ? row<uint32_t>(warp, i->b)[first] : 0;
  if (number >= block.barriers.size()) {
    return fault_here(warp, i, FaultKind::illegal_instruction, lanes, fmt::format("there is no barrier {}", number));
  }
  Barrier& barrier = block.barriers[number];
  if (count % warp_lanes != 0 || (barrier.in_use && barrier.expected != count)) {
    return fault_here(warp, i, FaultKind::deadlock, lanes,
                      fmt::format("barrier {} is asked for {} threads; {}", number, count,
                                  count % warp_lanes != 0 ? "expected a multiple of 32"
                                                          : fmt::format("others wait there for {}", barrier.expected)));
  }
  barrier.in_use = true;
  barrier.expected = count;
  if (block.strict != nullptr && block.strict->barrier_arrived(warp, i, lanes, number) == nullptr) return nullptr;
  // A counted barrier counts whole warps, exited lanes included.
  const bool whole = count != 0 && lanes == warp.live;
  barrier.arrived += whole ? warp_lanes : static_cast<uint32_t>(std::popcount(lanes));
  vote(warp, i, lanes, barrier);
  if ((i->immediate & barrier_action) != barrier_arrive) {
    Fragment fragment;
    fragment.at = i + 1;
    fragment.lanes = lanes;
    fragment.wait = Wait::barrier;
    fragment.barrier = static_cast<uint8_t>(number);
    add_waiting(warp, fragment);
    warp.active &= ~lanes;
  }
  if (complete(block, barrier)) release(block, static_cast<uint8_t>(number));
  return warp.active != 0 ? i + 1 : next_fragment(warp);
}

}  // namespace kiln::emulator
