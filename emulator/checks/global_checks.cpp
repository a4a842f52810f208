#include "checks/global_checks.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "checks/fault.h"
#include "checks/memory_recorder.h"
#include "lane_groups.h"

namespace kiln::emulator {
namespace {

/// The valid range that holds the bytes; an empty one if there is none.
AddressWindow window_of(const Block& block, uint64_t begin, uint64_t end) {
  for (const AddressWindow& window : block.windows) {
    if (begin >= window.begin && end <= window.end) return window;
  }
  const Region* const region = RegionFinder(block.launch->memory.get(), block.variables).find(begin);
  if (region == nullptr || end > region->end) return {};
  return {region->begin, region->end, region->written, region->marks};
}

template <class Word>
bool all_set(const uint8_t* flags) {
  Word word;
  std::memcpy(&word, flags, sizeof word);
  return word == static_cast<Word>(0x0101010101010101u);
}

bool all_set(const uint8_t* flags, uint64_t bytes) {
  switch (bytes) {
    case 1:
      return *flags != 0;
    case 2:
      return all_set<uint16_t>(flags);
    case 4:
      return all_set<uint32_t>(flags);
    case 8:
      return all_set<uint64_t>(flags);
    default:
      return std::memchr(flags, 0, bytes) == nullptr;
  }
}

void set_all(uint8_t* flags, uint32_t bytes) {
  if (bytes == 4) {
    const uint32_t set = 0x01010101;
    std::memcpy(flags, &set, sizeof set);
    return;
  }
  std::memset(flags, 1, bytes);
}

/// The lanes whose generic address is in local memory.
Mask lanes_in_local(const Block& block, const AccessRequest& request) {
  const auto begin = reinterpret_cast<uint64_t>(block.local);
  const uint64_t bytes = local_bytes(block);
  if (request.reach.highest < begin || request.reach.lowest >= begin + bytes) return 0;
  Mask lanes = 0;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    lanes |= static_cast<Mask>(request.address[lane] - begin < bytes) << lane;
  }
  return lanes;
}

}  // namespace

GlobalChecks::GlobalChecks(const Block& block, uint32_t threads, const SharedShadow& time, ReleaseTable& releases,
                           UnwrittenValues& values)
    : values_(values),
      finds_races_(block.launch->grid.count() <= GlobalShadow::most_blocks),
      order_(block.code->synchronises_in_parts ? std::optional<BlockOrder>(std::in_place, releases, time, threads)
                                               : std::nullopt),
      shadow_(block.launch->number, block.code->global_piece_bytes, time, order_ ? &*order_ : nullptr),
      local_written_(size_t{block.local_stride} * threads) {}

void GlobalChecks::begin_block(uint64_t number) {
  if (order_) order_->begin_block(number);
  shadow_.begin_block(number);
  std::fill(local_written_.begin(), local_written_.end(), uint8_t{0});
}

bool GlobalChecks::access(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  if (request.space == ptx::Space::local) return local_access(warp, i, request, lanes);
  const Mask local = lanes & lanes_in_local(*warp.block, request);
  if (local != 0 && !local_access(warp, i, request, local)) return false;
  lanes &= ~local;
  if (lanes == 0) return true;
  const bool stores = request.kind != AccessKind::load && !request.is_asynchronous;
  if (stores && !values_.may_store(warp, i, lanes)) return false;
  const AddressWindow window = window_of(*warp.block, request.reach.lowest, request.reach.highest + request.bytes);
  const AddressWindow* const one_window = window.end > window.begin ? &window : nullptr;
  const bool marked = finds_races_ && (one_window == nullptr || window.marks != nullptr);
  if (marked && one_window != nullptr && request.kind == AccessKind::load &&
      shadow_.is_old_news(request, lanes, window)) {
    return true;
  }
  if (one_window == nullptr || window.written != nullptr) {
    if (!is_initialised(warp, i, request, one_window, lanes)) return false;
  }
  if (!marked || lanes == 0) return true;
  return request.kind == AccessKind::load ? reads(warp, i, request, one_window, lanes)
                                          : writes(warp, i, request, one_window, lanes);
}

/// Looks at what a load or an atomic reads, and notes what a store writes. `window` holds all of the lanes' addresses;
/// null if no window does. Takes out of `lanes` those that read what nobody has written, which is followed from there.
/// False: a fault, or not now.
bool GlobalChecks::is_initialised(Warp& warp, const Instruction* i, const AccessRequest& request,
                                  const AddressWindow* window, Mask& lanes) {
  const Reach& reach = request.reach;
  constexpr uint64_t worth_scanning = 512;  // bytes
  const uint64_t stretch = reach.highest + request.bytes - reach.lowest;
  if (window != nullptr && request.kind == AccessKind::load && stretch <= worth_scanning &&
      all_set(window->written + (reach.lowest - window->begin), stretch)) {
    return true;
  }
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t address = request.address[lane];
    const AddressWindow here = window != nullptr ? *window : window_of(*warp.block, address, address + request.bytes);
    if (here.written == nullptr) continue;
    uint8_t* const flags = here.written + (address - here.begin);
    if (all_set(flags, request.bytes)) continue;
    if (request.kind == AccessKind::store) {
      set_all(flags, request.bytes);
      continue;
    }
    const auto fault = [&] {
      const auto* const hole = static_cast<const uint8_t*>(std::memchr(flags, 0, request.bytes));
      uninitialised_fault(warp, i, request, lane, static_cast<uint64_t>(hole - flags));
    };
    if (!follow(warp, i, request, lane, flags, fault)) return false;
    lanes &= ~(Mask{1} << lane);
  }
  return true;
}

/// The lane loads what is, in part, unwritten; `flags` says of each byte whether it is not. False: `fault` is the
/// block's, or the warp does this later.
bool GlobalChecks::follow(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                          const uint8_t* flags, const std::function<void()>& fault) {
  if (!values_.can_follow(*warp.block, i, request)) {
    fault();
    return false;
  }
  if (!values_.is_followed(warp)) {
    values_.begin_following(warp, i);
    return false;
  }
  values_.mark(
      warp, i, request, Mask{1} << lane,
      [&](uint32_t offset, uint32_t bytes) { return !all_set(flags + offset, bytes); }, fault);
  return true;
}

/// `window` holds all of the lanes' addresses; null if no window does.
bool GlobalChecks::reads(Warp& warp, const Instruction* i, const AccessRequest& request, const AddressWindow* window,
                         Mask lanes) {
  const Block& block = *warp.block;
  const bool strong = block.code->order[index_of(block, i)] != order_weak;
  const uint32_t first = first_thread(warp);
  uint32_t lane = 0;
  std::optional<GlobalShadow::Other> other;
  if (window != nullptr) {
    other = shadow_.read_lanes(request, lanes, *window, first, strong, lane);
  } else {
    for (Mask rest = lanes; rest != 0 && !other; rest &= rest - 1) {
      lane = static_cast<uint32_t>(std::countr_zero(rest));
      const uint64_t address = request.address[lane];
      const AddressWindow here = window_of(block, address, address + request.bytes);
      if (here.marks != nullptr) other = shadow_.read_lanes(request, rest & -rest, here, first, strong, lane);
    }
  }
  if (other) global_race_fault(warp, i, request, lane, *other);
  return !other;
}

/// The same for stores and atomics. Lanes at one address store together: they are in no order, whatever went before.
bool GlobalChecks::writes(Warp& warp, const Instruction* i, const AccessRequest& request, const AddressWindow* window,
                          Mask lanes) {
  const Block& block = *warp.block;
  const bool atomic = request.kind == AccessKind::atomic;
  const bool strong = atomic || block.code->order[index_of(block, i)] != order_weak;
  const bool meet = !atomic && !ascending(request, lanes);
  for (Mask rest = lanes, group = 0; rest != 0; rest &= ~group) {
    const auto leader = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t address = request.address[leader];
    group = meet ? at_leaders_address(request, rest) : rest & -rest;
    const AddressWindow here = window != nullptr ? *window : window_of(block, address, address + request.bytes);
    if (here.marks == nullptr) continue;
    if (meet && !strong && request.value_of != nullptr) {
      if (const Mask other = disagreeing(warp, i, request, group)) {
        conflict_fault(warp, i, group, static_cast<uint32_t>(std::countr_zero(other)), request);
        return false;
      }
    }
    const auto other = shadow_.write(
        shadow_.access(here.marks, address - here.begin, request.bytes, first_thread(warp) + leader, strong),
        [&] { return repeats(warp, i, request, group); });
    if (!other) continue;
    global_race_fault(warp, i, request, leader, *other);
    return false;
  }
  return true;
}

/// Each thread's own memory: only what it has written itself in this block has a value.
bool GlobalChecks::local_access(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  const auto begin = reinterpret_cast<uint64_t>(warp.block->local);
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    uint8_t* const flags = local_written_.data() + (request.address[lane] - begin);
    if (request.kind == AccessKind::load && !all_set(flags, request.bytes)) {
      const auto fault = [&] {
        const auto* const hole = static_cast<const uint8_t*>(std::memchr(flags, 0, request.bytes));
        local_fault(warp, i, request, lane, static_cast<uint64_t>(hole - flags));
      };
      if (!follow(warp, i, request, lane, flags, fault)) return false;
    }
    if (request.kind == AccessKind::load) continue;
    set_all(flags, request.bytes);
    if (!values_.is_followed(warp)) continue;
    values_.each_unwritten_element(warp, i, request, lane,
                                   [&](uint32_t offset, uint32_t bytes) { std::memset(flags + offset, 0, bytes); });
  }
  return true;
}

void GlobalChecks::order_by_memory(const Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  const uint8_t order = warp.block->code->order[index_of(*warp.block, i)];
  if (!order_ || (order & order_in_block) != 0) return;
  order_->settle();
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const uint32_t thread = first_thread(warp) + lane;
    if (request.kind != AccessKind::load) {
      order_->published(thread, request.address[lane], (order & order_releases) != 0);
    }
    if (request.kind != AccessKind::store) {
      order_->observed(thread, request.address[lane], (order & order_acquires) != 0);
    }
  }
}

void GlobalChecks::fence(const Warp& warp, const Instruction* i, Mask lanes) {
  const auto order = static_cast<uint8_t>(i->immediate);
  if (order_ && (order & order_in_block) == 0) order_->fenced(first_thread(warp), lanes, order);
}

}  // namespace kiln::emulator
