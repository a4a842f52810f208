#include "scheduler/mbarrier_instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "checks/access.h"
#include "checks/fault.h"
#include "checks/strict.h"
#include "mbarrier_phases.h"
#include "scheduler/divergence.h"
#include "warp/fragments.h"

namespace kiln::emulator {
namespace {

constexpr uint32_t object_bytes = 8;
constexpr uint32_t pending_bits = 20;  // of a state, below the phase

uint64_t state_of(const Mbarrier& mbarrier) {
  return mbarrier.phase << pending_bits | mbarrier.pending;
}

bool inspect(Warp& warp, const Instruction* i, Mask lanes, AccessKind kind) {
  AccessRequest request;
  request.space = ptx::Space::shared;
  request.kind = kind;
  request.bytes = object_bytes;
  request.lanes = lanes;
  const uint64_t* const addresses = row<uint64_t>(warp, i->a);
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) request.address[lane] = addresses[lane];
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const uint64_t address = addresses[std::countr_zero(rest)];
    request.reach.lowest = std::min(request.reach.lowest, address);
    request.reach.highest = std::max(request.reach.highest, address);
  }
  return inspect_access(warp, i, request);
}

/// Calls use(lane, address) for each lane that executes `i`, in order, until it returns false: then there is a fault.
template <bool inspected, class Use>
const Instruction* each_lane(Warp& warp, const Instruction* i, AccessKind kind, Use use) {
  const Mask lanes = guarded(warp, i);
  if constexpr (inspected) {
    if (!inspect(warp, i, lanes, kind)) return nullptr;
  }
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (!use(lane, row<uint64_t>(warp, i->a)[lane])) return nullptr;
  }
  return i + 1;
}

bool refuse(Warp& warp, const Instruction* i, uint32_t lane, std::string_view why) {
  fault_here(warp, i, FaultKind::illegal_instruction, Mask{1} << lane, why);
  return false;
}

template <bool inspected>
const Instruction* init(Warp& warp, const Instruction* i) {
  return each_lane<inspected>(warp, i, AccessKind::store, [&](uint32_t lane, uint64_t address) {
    const uint32_t arrivals = row<uint32_t>(warp, i->b)[lane];
    if (arrivals < 1 || arrivals > Mbarriers::most_arrivals) {
      return refuse(warp, i, lane,
                    fmt::format("an mbarrier for {} arrivals; expected 1 to {}", arrivals, Mbarriers::most_arrivals));
    }
    warp.block->mbarriers->init(address - reinterpret_cast<uint64_t>(warp.block->shared), arrivals);
    return true;
  });
}

template <bool inspected>
const Instruction* invalidate(Warp& warp, const Instruction* i) {
  return each_lane<inspected>(warp, i, AccessKind::store, [&](uint32_t lane, uint64_t address) {
    uint64_t offset = 0;
    if (find_mbarrier(warp, i, lane, address, offset) == nullptr) return false;
    warp.block->mbarriers->invalidate(offset);
    return true;
  });
}

template <bool inspected>
const Instruction* arrive(Warp& warp, const Instruction* i) {
  return each_lane<inspected>(warp, i, AccessKind::atomic, [&](uint32_t lane, uint64_t address) {
    Block& block = *warp.block;
    uint64_t offset = 0;
    Mbarrier* const mbarrier = find_mbarrier(warp, i, lane, address, offset);
    if (mbarrier == nullptr) return false;
    const uint32_t arrivals = row<uint32_t>(warp, i->b)[lane];
    if (arrivals < 1 || arrivals > mbarrier->pending) {
      return refuse(
          warp, i, lane,
          fmt::format("arrives {} times at the mbarrier at offset {} of shared memory, whose phase {} lacks {}",
                      arrivals, offset, mbarrier->phase, mbarrier->pending));
    }
    row<uint64_t>(warp, i->d)[lane] = state_of(*mbarrier);
    if (i->c != 0) mbarrier->bytes += row<uint32_t>(warp, i->c)[lane];
    mbarrier->pending -= arrivals;
    if ((i->immediate & arrival_drops) != 0) mbarrier->expected -= std::min(arrivals, mbarrier->expected);
    if ((i->immediate & arrival_no_complete) != 0 && mbarrier->pending == 0) {
      return refuse(warp, i, lane, "this arrival may not end the phase, and is the last one");
    }
    if (block.strict != nullptr && (i->immediate & arrival_releases) != 0) {
      block.strict->mbarrier_arrived(warp, lane, address);
    }
    block.mbarriers->note_progress();
    settle_mbarrier(block, offset, false);
    return true;
  });
}

template <bool inspected>
const Instruction* transact(Warp& warp, const Instruction* i) {
  return each_lane<inspected>(warp, i, AccessKind::atomic, [&](uint32_t lane, uint64_t address) {
    uint64_t offset = 0;
    Mbarrier* const mbarrier = find_mbarrier(warp, i, lane, address, offset);
    if (mbarrier == nullptr) return false;
    const int64_t bytes = row<uint32_t>(warp, i->b)[lane];
    mbarrier->bytes += i->immediate == 0 ? bytes : -bytes;
    warp.block->mbarriers->note_progress();
    settle_mbarrier(*warp.block, offset, false);
    return true;
  });
}

/// Whether the phase that the lane asks for has ended.
bool has_ended(const Warp& warp, const Instruction* i, uint32_t lane, const Mbarrier& mbarrier) {
  if ((i->immediate & wait_by_parity) != 0) return (mbarrier.phase & 1) != (row<uint32_t>(warp, i->b)[lane] & 1);
  return mbarrier.phase != row<uint64_t>(warp, i->b)[lane] >> pending_bits;
}

template <bool inspected>
const Instruction* wait(Warp& warp, const Instruction* i) {
  Block& block = *warp.block;
  const Mask lanes = guarded(warp, i);
  Mask ended = 0;
  uint64_t first = 0;
  bool together = true;  // the lanes wait for one mbarrier
  const auto look = [&](uint32_t lane, uint64_t address) {
    uint64_t offset = 0;
    const Mbarrier* const mbarrier = find_mbarrier(warp, i, lane, address, offset);
    if (mbarrier == nullptr) return false;
    if (!has_ended(warp, i, lane, *mbarrier)) settle_mbarrier(block, offset, true);
    const bool over = has_ended(warp, i, lane, *mbarrier);
    if (over && block.strict != nullptr && (i->immediate & wait_acquires) != 0) {
      block.strict->mbarrier_passed(warp, Mask{1} << lane, address);
    }
    ended |= static_cast<Mask>(over) << lane;
    if (lane == static_cast<uint32_t>(std::countr_zero(lanes))) first = offset;
    together = together && offset == first;
    return true;
  };
  if (each_lane<inspected>(warp, i, AccessKind::atomic, look) == nullptr) return nullptr;
  if (lanes == 0) return i + 1;
  if (ended == 0 && together) {
    Fragment fragment;
    fragment.at = i + 1;
    fragment.lanes = lanes;
    fragment.wait = Wait::mbarrier;
    fragment.offset = static_cast<uint32_t>(first);
    add_waiting(warp, fragment);
    return leave(warp, i, lanes);
  }
  Mask& d = *row<Mask>(warp, i->d);
  d = (d & ~lanes) | ended;
  if (ended != 0) return i + 1;
  add_ready(warp, i + 1, warp.active);  // the others have their turn
  warp.active = 0;
  return nullptr;
}

}  // namespace

const HandlerPair mbarrier_init = {init<false>, init<true>};
const HandlerPair mbarrier_invalidate = {invalidate<false>, invalidate<true>};
const HandlerPair mbarrier_arrive = {arrive<false>, arrive<true>};
const HandlerPair mbarrier_transact = {transact<false>, transact<true>};
const HandlerPair mbarrier_wait = {wait<false>, wait<true>};

const Instruction* execute_mbarrier_pending_count(Warp& warp, const Instruction* i) {
  for (Mask rest = guarded(warp, i); rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    row<uint32_t>(warp, i->d)[lane] = static_cast<uint32_t>(row<uint64_t>(warp, i->a)[lane]) & Mbarriers::most_arrivals;
  }
  return i + 1;
}

Mbarrier* find_mbarrier(Warp& warp, const Instruction* i, uint32_t lane, uint64_t address, uint64_t& offset) {
  offset = address - reinterpret_cast<uint64_t>(warp.block->shared);
  Mbarrier* const found = warp.block->mbarriers->find(offset);
  if (found == nullptr) {
    fault_here(warp, i, FaultKind::illegal_instruction, Mask{1} << lane,
               fmt::format("there is no mbarrier at offset {} of shared memory: mbarrier.init has made none",
                           static_cast<int64_t>(offset)));
  }
  return found;
}

}  // namespace kiln::emulator
