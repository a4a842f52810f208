#include "checks/strict.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "checks/fault.h"
#include "checks/memory_recorder.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

constexpr uint32_t widest_access = 32;

uint64_t shared_begin(const Block& block) {
  return reinterpret_cast<uint64_t>(block.shared);
}

uint32_t index_of(const Block& block, const Instruction* i) {
  return static_cast<uint32_t>(i - block.first);
}

uint32_t first_thread(const Warp& warp) {
  return warp.index * warp_lanes;
}

/// Whether the lanes, which are at one address, store what stands there already.
bool repeats(const Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  if (request.value_of == nullptr) return false;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    std::byte value[widest_access];
    request.value_of(warp, i, static_cast<int>(lane), value);
    if (std::memcmp(value, reinterpret_cast<const void*>(request.address[lane]), request.bytes) != 0) return false;
  }
  return true;
}

/// The first of the lanes, which are at one address, that does not store what the one before them does; 0 if none.
Mask disagreeing(const Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  std::byte first[widest_access], value[widest_access];
  request.value_of(warp, i, std::countr_zero(lanes), first);
  for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1) {
    request.value_of(warp, i, std::countr_zero(lanes), value);
    if (std::memcmp(value, first, request.bytes) != 0) return lanes & -lanes;
  }
  return 0;
}

/// Whether every lane is at a higher address than the one before it.
bool ascending(const AccessRequest& request, Mask lanes) {
  uint64_t last = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t address = request.address[static_cast<size_t>(std::countr_zero(lanes))];
    if (address <= last) return false;
    last = address;
  }
  return true;
}

/// The lanes at the first one's address.
Mask at_leaders_address(const AccessRequest& request, Mask lanes) {
  const uint64_t leader = request.address[static_cast<size_t>(std::countr_zero(lanes))];
  Mask same = 0;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    same |= static_cast<Mask>(request.address[lane] == leader) << lane;
  }
  return same & lanes;
}

/// Those of them that follow one another: enough for reads, where nothing depends on who reads together.
Mask run_at_leaders_address(const AccessRequest& request, Mask lanes) {
  const auto leader = static_cast<uint32_t>(std::countr_zero(lanes));
  uint32_t end = leader + 1;
  while (end < warp_lanes && (lanes >> end & 1) != 0 && request.address[end] == request.address[leader]) ++end;
  const Mask below_end = end == warp_lanes ? full_mask : (Mask{1} << end) - 1;
  return lanes & below_end;
}

/// The valid range that holds the bytes; an empty one if there is none.
AddressWindow window_of(const Block& block, uint64_t begin, uint64_t end) {
  for (const AddressWindow& window : block.windows) {
    if (begin >= window.begin && end <= window.end) return window;
  }
  const Region* const region = RegionFinder(block.launch->memory.get(), block.variables).find(begin);
  if (region == nullptr || end > region->end) return {};
  return {region->begin, region->end, region->written};
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

}  // namespace

StrictChecks::StrictChecks(const Code& code, uint32_t shared_bytes, uint32_t threads)
    : shared_(shared_bytes, code.shared_piece_bytes, threads, code.synchronises_in_parts) {}

StrictChecks::Reach StrictChecks::reach_of(const AccessRequest& request) {
  const uint64_t stand_in = request.address[static_cast<size_t>(std::countr_zero(request.lanes))];
  Reach reach;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    const uint64_t address = (request.lanes >> lane & 1) != 0 ? request.address[lane] : stand_in;
    reach.lowest = address < reach.lowest ? address : reach.lowest;
    reach.highest = address > reach.highest ? address : reach.highest;
  }
  return reach;
}

/// Whether every lane is there, side by side with the next.
bool StrictChecks::is_row(const AccessRequest& request, const Reach& reach) {
  if (request.lanes != full_mask || reach.highest - reach.lowest != uint64_t{31} * request.bytes) return false;
  uint64_t gaps = 0;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    gaps |= request.address[lane] - reach.lowest - uint64_t{lane} * request.bytes;
  }
  return gaps == 0;
}

bool StrictChecks::access(Warp& warp, const Instruction* i, const AccessRequest& request) {
  if (request.space == ptx::Space::local || request.space == ptx::Space::constant || request.lanes == 0) return true;
  const Block& block = *warp.block;
  Mask shared = request.space == ptx::Space::shared ? request.lanes : 0;
  const uint64_t begin = shared_begin(block), end = begin + block.shared_bytes;
  const Reach reach = reach_of(request);
  if (request.space == ptx::Space::generic && reach.highest >= begin && reach.lowest < end) {
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
      shared |= static_cast<Mask>(request.address[lane] - begin < block.shared_bytes) << lane;
    }
    shared &= request.lanes;
  }
  if (shared != 0 && !shared_access(warp, i, request, reach, shared)) return false;
  const Mask global = request.lanes & ~shared;
  if (global != 0 && !global_access(warp, i, request, reach, global)) return false;
  if (shared_.is_partial()) order_by_memory(warp, i, request, request.lanes);
  return true;
}

SharedShadow::Result StrictChecks::shared_group(Warp& warp, const Instruction* i, const AccessRequest& request,
                                                const SharedShadow::Access& group) {
  if (request.kind == AccessKind::load) return shared_.read(group);
  if (request.kind == AccessKind::atomic) return shared_.update(group);
  if (request.is_asynchronous) return shared_.write_later(group);
  return shared_.write(group, [&] { return repeats(warp, i, request, group.lanes); });
}

/// The short cuts for what nearly all accesses look like. False, and nothing done, for others.
bool StrictChecks::whole_warp_access(const Block& block, const AccessRequest& request, const Reach& reach,
                                     const SharedShadow::Access& group) {
  const uint64_t begin = shared_begin(block);
  const auto lowest = static_cast<uint32_t>(reach.lowest - begin);
  if (request.kind == AccessKind::store) {
    if (request.is_asynchronous || !is_row(request, reach)) return false;
    return shared_.write_row(lowest, request.bytes, group.first, group.at);
  }
  SharedShadow::WarpRead read;
  read.at = group.at;
  read.first = group.first;
  read.bytes = request.bytes;
  read.lanes = request.lanes;
  for (size_t lane = 0; lane < warp_lanes; ++lane) {
    read.offset[lane] = static_cast<uint32_t>(request.address[lane] - begin);
  }
  return shared_.log_read(read, lowest, static_cast<uint32_t>(reach.highest - begin));
}

bool StrictChecks::shared_access(Warp& warp, const Instruction* i, const AccessRequest& request, const Reach& reach,
                                 Mask lanes) {
  const Block& block = *warp.block;
  SharedShadow::Access group;
  group.bytes = request.bytes;
  group.first = first_thread(warp);
  group.at = index_of(block, i);
  group.strong = request.kind == AccessKind::atomic || block.code->order[group.at] != order_weak;
  if (lanes == request.lanes && !group.strong && whole_warp_access(block, request, reach, group)) return true;
  const bool meet = request.kind == AccessKind::store && !ascending(request, lanes);
  for (Mask rest = lanes; rest != 0; rest &= ~group.lanes) {
    group.lanes = meet ? at_leaders_address(request, rest) : run_at_leaders_address(request, rest);
    group.offset =
        static_cast<uint32_t>(request.address[static_cast<size_t>(std::countr_zero(rest))] - shared_begin(block));
    if (meet && request.value_of != nullptr) {
      if (const Mask other = disagreeing(warp, i, request, group.lanes)) {
        conflict_fault(warp, i, group.lanes, static_cast<uint32_t>(std::countr_zero(other)), request);
        return false;
      }
    }
    if (const SharedShadow::Result result = shared_group(warp, i, request, group)) {
      shared_fault(warp, i, request, result);
      return false;
    }
  }
  return true;
}

bool StrictChecks::global_access(Warp& warp, const Instruction* i, const AccessRequest& request, const Reach& reach,
                                 Mask lanes) {
  constexpr uint64_t worth_scanning = 512;  // bytes
  const Block& block = *warp.block;
  AddressWindow window = window_of(block, reach.lowest, reach.highest + request.bytes);
  const bool one_window = window.end > window.begin;
  if (one_window && window.written == nullptr) return true;
  const uint64_t stretch = reach.highest + request.bytes - reach.lowest;
  if (one_window && request.kind == AccessKind::load && stretch <= worth_scanning &&
      all_set(window.written + (reach.lowest - window.begin), stretch)) {
    return true;
  }
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(rest));
    const uint64_t address = request.address[lane];
    if (!one_window) window = window_of(block, address, address + request.bytes);
    if (window.written == nullptr) continue;
    uint8_t* const flags = window.written + (address - window.begin);
    if (request.kind != AccessKind::store && !all_set(flags, request.bytes)) {
      const auto* const hole = static_cast<const uint8_t*>(std::memchr(flags, 0, request.bytes));
      uninitialised_fault(warp, i, request, static_cast<uint32_t>(lane), static_cast<uint64_t>(hole - flags));
      return false;
    }
    if (request.kind != AccessKind::load) set_all(flags, request.bytes);
  }
  return true;
}

/// Strong reads and writes may order what threads did before and after them.
void StrictChecks::order_by_memory(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  const uint8_t order = warp.block->code->order[index_of(*warp.block, i)];
  if (order == order_weak && request.kind != AccessKind::atomic) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const uint32_t thread = first_thread(warp) + lane;
    if (request.kind != AccessKind::store) {
      shared_.observed(thread, request.address[lane], (order & order_acquires) != 0);
    }
    if (request.kind != AccessKind::load) {
      shared_.published(thread, request.address[lane], (order & order_releases) != 0);
    }
  }
}

void StrictChecks::copy_landed(const Warp& warp, const Instruction* i, uint32_t lane, uint64_t address,
                               uint32_t bytes) {
  SharedShadow::Access access;
  access.offset = static_cast<uint32_t>(address - shared_begin(*warp.block));
  access.bytes = bytes;
  access.first = first_thread(warp);
  access.lanes = Mask{1} << lane;
  access.at = index_of(*warp.block, i);
  shared_.landed(access);
}

void StrictChecks::warp_met(const Warp& warp, Mask lanes) {
  shared_.warp_met(first_thread(warp), lanes, warp.live);
}

void StrictChecks::fence(const Warp& warp, Mask lanes) {
  shared_.fenced(first_thread(warp), lanes);
}

const Instruction* StrictChecks::barrier_arrived(Warp& warp, const Instruction* i, Mask lanes, uint32_t number) {
  Barrier& barrier = warp.block->barriers[number];
  if (barrier.expected == 0) {
    if (barrier.first_at != nullptr && barrier.first_at != i) return divergent_barrier_fault(warp, i, lanes, number);
    barrier.first_at = i;
    barrier.first_thread = first_thread(warp) + static_cast<uint32_t>(std::countr_zero(lanes));
  }
  shared_.arrived(number, first_thread(warp), lanes);
  return i;
}

const Instruction* StrictChecks::barrier_diverged(Warp& warp, const Instruction* i, Mask lanes) {
  for (uint32_t k = 0; k < warp.fragment_count; ++k) {
    const Fragment& other = warp.fragments[k];
    if (other.wait == Wait::converge && other.at != i && other.at->execute == execute_barrier) {
      return divergent_warp_fault(warp, i, lanes, other);
    }
  }
  return i;
}

void StrictChecks::barrier_complete(Block& block, uint32_t number) {
  uint32_t threads = 0;
  for (Warp& warp : block.warps) {
    for (uint32_t k = 0; k < warp.fragment_count; ++k) {
      const Fragment& fragment = warp.fragments[k];
      if (fragment.wait != Wait::barrier || fragment.barrier != number) continue;
      threads += static_cast<uint32_t>(std::popcount(fragment.lanes));
      shared_.left(number, first_thread(warp), fragment.lanes);
    }
  }
  shared_.barrier_over(number);
  if (threads == block.live_threads) shared_.block_met();
}

}  // namespace kiln::emulator
