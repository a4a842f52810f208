#include "checks/strict.h"

#include <bit>

#include "checks/fault.h"
#include "lane_groups.h"

namespace kiln::emulator {
namespace {

uint64_t shared_begin(const Block& block) {
  return reinterpret_cast<uint64_t>(block.shared);
}

/// Whether every lane is there, side by side with the next.
bool is_row(const AccessRequest& request) {
  const Reach& reach = request.reach;
  if (request.lanes != full_mask || reach.highest - reach.lowest != uint64_t{31} * request.bytes) return false;
  uint64_t gaps = 0;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    gaps |= request.address[lane] - reach.lowest - uint64_t{lane} * request.bytes;
  }
  return gaps == 0;
}

/// The lanes that follow the first one and are at its address: enough for reads, where nothing depends on who reads
/// together.
Mask run_at_leaders_address(const AccessRequest& request, Mask lanes) {
  const auto leader = static_cast<uint32_t>(std::countr_zero(lanes));
  uint32_t end = leader + 1;
  while (end < warp_lanes && (lanes >> end & 1) != 0 && request.address[end] == request.address[leader]) ++end;
  const Mask below_end = end == warp_lanes ? full_mask : (Mask{1} << end) - 1;
  return lanes & below_end;
}

}  // namespace

StrictChecks::StrictChecks(const Block& block, const ValueFlow& flow, uint32_t threads, ReleaseTable& releases)
    : values_(block, flow),
      shared_(block.shared_bytes, block.code->shared_piece_bytes, threads, block.code->synchronises_in_parts),
      global_(block, threads, shared_, releases, values_) {}

void StrictChecks::begin_block(uint64_t number) {
  values_.begin_block();
  shared_.begin_block();
  global_.begin_block(number);
}

bool StrictChecks::access(Warp& warp, const Instruction* i, const AccessRequest& request) {
  if (request.space == ptx::Space::constant || request.lanes == 0) return true;
  const Block& block = *warp.block;
  Mask shared = request.space == ptx::Space::shared ? request.lanes : 0;
  const uint64_t begin = shared_begin(block), end = begin + block.shared_bytes;
  const Reach& reach = request.reach;
  if (request.space == ptx::Space::generic && reach.highest >= begin && reach.lowest < end) {
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
      shared |= static_cast<Mask>(request.address[lane] - begin < block.shared_bytes) << lane;
    }
    shared &= request.lanes;
  }
  if (shared != 0 && !shared_access(warp, i, request, shared)) return false;
  const Mask elsewhere = request.lanes & ~shared;
  if (elsewhere != 0 && !global_.access(warp, i, request, elsewhere)) return false;
  if (!shared_.is_partial()) return true;
  order_by_memory(warp, i, request, elsewhere);
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
bool StrictChecks::whole_warp_access(const Block& block, const AccessRequest& request,
                                     const SharedShadow::Access& group) {
  const uint64_t begin = shared_begin(block);
  const Reach& reach = request.reach;
  const auto lowest = static_cast<uint32_t>(reach.lowest - begin),
             highest = static_cast<uint32_t>(reach.highest - begin);
  if (request.kind == AccessKind::store && !request.is_asynchronous) {
    return is_row(request) && shared_.write_row(lowest, request.bytes, group.first, group.at);
  }
  if (request.is_bulk || (request.is_asynchronous && !apart(request))) return false;
  SharedShadow::WarpAccess access;
  access.at = group.at;
  access.first = group.first;
  access.bytes = request.bytes;
  access.lanes = request.lanes;
  for (size_t lane = 0; lane < warp_lanes; ++lane) {
    access.offset[lane] = static_cast<uint32_t>(request.address[lane] - begin);
  }
  return request.is_asynchronous ? shared_.write_all_later(access, lowest, highest)
                                 : shared_.log_read(access, lowest, highest);
}

/// Lanes at one address load what is, in part, unwritten.
bool StrictChecks::follow_shared(Warp& warp, const Instruction* i, const AccessRequest& request,
                                 const SharedShadow::Access& group, const SharedShadow::Result& result) {
  if (!values_.is_followed(warp)) {
    values_.begin_following(warp, i);
    return false;
  }
  SharedShadow::Result other;  // something else that is wrong with one of the elements
  const auto is_unwritten = [&](uint32_t offset, uint32_t bytes) {
    SharedShadow::Access element = group;
    element.offset += offset;
    element.bytes = bytes;
    const SharedShadow::Result found = shared_.read(element);
    if (found.finding == SharedShadow::Finding::uninitialised) return true;
    if (found) other = found;
    return false;
  };
  values_.mark(warp, i, request, group.lanes, is_unwritten, [&] { shared_fault(warp, i, request, result); });
  if (other) shared_fault(warp, i, request, other);
  return !other;
}

bool StrictChecks::shared_access(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  const Block& block = *warp.block;
  SharedShadow::Access group;
  group.bytes = request.bytes;
  group.first = first_thread(warp);
  group.at = index_of(block, i);
  group.is_bulk = request.is_bulk;
  group.strong = request.kind == AccessKind::atomic || block.code->order[group.at] != order_weak;
  const bool stores = request.kind != AccessKind::load && !request.is_asynchronous;
  const bool keeps = stores && values_.can_keep(block, i, request);
  if (stores && !keeps && !values_.may_store(warp, i, lanes)) return false;
  if (!order_shared(warp, i, request, lanes, group)) return false;
  if (!keeps || !values_.is_followed(warp)) return true;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const auto place = static_cast<uint32_t>(request.address[lane] - shared_begin(block));
    values_.each_unwritten_element(warp, i, request, lane, [&](uint32_t offset, uint32_t bytes) {
      shared_.hold_unwritten(place + offset, bytes);
    });
  }
  return true;
}

/// Looks for races of an access to shared memory, and for unwritten memory in what it loads. `group` has everything but
/// the lanes and their address.
bool StrictChecks::order_shared(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes,
                                SharedShadow::Access group) {
  const Block& block = *warp.block;
  if (lanes == request.lanes && !group.strong && whole_warp_access(block, request, group)) return true;
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
    const SharedShadow::Result result = shared_group(warp, i, request, group);
    if (result.finding == SharedShadow::Finding::uninitialised && values_.can_follow(block, i, request)) {
      if (!follow_shared(warp, i, request, group, result)) return false;
    } else if (result) {
      shared_fault(warp, i, request, result);
      return false;
    }
  }
  return true;
}

/// Strong reads and writes may order what threads did before and after them; those of `global` in other blocks, too.
void StrictChecks::order_by_memory(Warp& warp, const Instruction* i, const AccessRequest& request, Mask global) {
  const uint8_t order = warp.block->code->order[index_of(*warp.block, i)];
  if (order == order_weak && request.kind != AccessKind::atomic) return;
  for (Mask lanes = request.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const uint32_t thread = first_thread(warp) + lane;
    if (request.kind != AccessKind::store) {
      shared_.observed(thread, request.address[lane], (order & order_acquires) != 0);
    }
    if (request.kind != AccessKind::load) {
      shared_.published(thread, request.address[lane], (order & order_releases) != 0);
    }
  }
  global_.order_by_memory(warp, i, request, global);
}

void StrictChecks::copies_landed(const Warp& warp, const AsyncCopies::Copy& copies, Mask lanes) {
  const uint64_t begin = shared_begin(*warp.block);
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t to = copies.to[static_cast<size_t>(std::countr_zero(lanes))];
    shared_.landed(static_cast<uint32_t>(to - begin), copies.bytes);
  }
}

void StrictChecks::bulk_copy_landed(const Warp& warp, const Instruction* i, uint32_t lane, uint64_t address,
                                    uint32_t bytes) {
  SharedShadow::Access access;
  access.offset = static_cast<uint32_t>(address - shared_begin(*warp.block));
  access.bytes = bytes;
  access.first = first_thread(warp);
  access.lanes = Mask{1} << lane;
  access.at = index_of(*warp.block, i);
  access.is_bulk = true;
  shared_.landed(access);
}

void StrictChecks::mbarrier_arrived(const Warp& warp, uint32_t lane, uint64_t address) {
  shared_.published(first_thread(warp) + lane, address, true);
}

void StrictChecks::mbarrier_passed(const Warp& warp, Mask lanes, uint64_t address) {
  for (; lanes != 0; lanes &= lanes - 1) {
    shared_.observed(first_thread(warp) + static_cast<uint32_t>(std::countr_zero(lanes)), address, true);
  }
}

void StrictChecks::warp_met(const Warp& warp, Mask lanes) {
  shared_.warp_met(first_thread(warp), lanes, warp.live);
}

void StrictChecks::fence(const Warp& warp, const Instruction* i, Mask lanes) {
  shared_.fenced(first_thread(warp), lanes, static_cast<uint8_t>(i->immediate));
  global_.fence(warp, i, lanes);
}

void StrictChecks::proxy_fence(const Warp& warp, Mask lanes) {
  shared_.proxies_fenced(first_thread(warp), lanes);
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
    if (other.wait == Wait::converge && other.at != i && other.at->execute == i->execute) {
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
