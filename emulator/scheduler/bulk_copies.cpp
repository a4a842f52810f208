#include "scheduler/bulk_copies.h"

#include <array>
#include <cstring>

#include "checks/strict.h"

namespace kiln::emulator {
namespace {

std::byte* pointer(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

/// Calls use(piece of shared memory, offset into the row, bytes) for the pieces in which the row lies there.
template <class Use>
void each_piece(const BulkCopy& copy, const BoxRow& row, Use use) {
  const auto base = reinterpret_cast<uint64_t>(copy.warp->block->shared);
  const uint64_t begin = copy.shared - base + row.shared_offset;
  if (copy.map->swizzle_bytes == 0) return use(pointer(base + begin), 0u, row.bytes);
  constexpr uint32_t piece = 16;
  for (uint32_t k = 0; k < row.bytes; k += piece) {
    use(pointer(base + swizzled(begin + k, copy.map->swizzle_bytes)), k, piece);
  }
}

void carry_out_box(const BulkCopy& copy) {
  constexpr size_t longest_row = 256 * 8;
  std::array<std::byte, longest_row> buffer;
  BoxRows rows(*copy.map, copy.corner);
  for (BoxRow row; rows.next(row);) {
    if (copy.to_shared) {
      std::memset(buffer.data(), 0, row.bytes);
      std::memcpy(buffer.data() + row.begin, pointer(row.address), row.end - row.begin);
      each_piece(copy, row, [&](std::byte* to, uint32_t k, uint32_t n) { std::memcpy(to, buffer.data() + k, n); });
    } else if (row.begin != row.end) {
      each_piece(copy, row, [&](std::byte* from, uint32_t k, uint32_t n) { std::memcpy(buffer.data() + k, from, n); });
      std::memcpy(pointer(row.address), buffer.data() + row.begin, row.end - row.begin);
    }
  }
}

void carry_out(const BulkCopy& copy) {
  if (copy.map) {
    carry_out_box(copy);
  } else if (copy.to_shared) {
    std::memcpy(pointer(copy.shared), pointer(copy.global), copy.bytes);
  } else {
    std::memcpy(pointer(copy.global), pointer(copy.shared), copy.bytes);
  }
}

uint32_t thread_of(const Warp& warp, uint32_t lane) {
  return warp.index * warp_lanes + lane;
}

}  // namespace

void BulkCopies::clear() {
  of_mbarrier_.clear();
  of_groups_.clear();
  committed_.clear();
}

uint64_t BulkCopies::bring_next(Block& block, uint64_t mbarrier) {
  const auto queue = of_mbarrier_.find(mbarrier);
  if (queue == of_mbarrier_.end() || queue->second.empty()) return 0;
  const BulkCopy copy = queue->second.front();
  queue->second.pop_front();
  carry_out(copy);
  if (block.strict != nullptr) {
    block.strict->bulk_copy_landed(*copy.warp, copy.at, copy.lane, copy.shared, static_cast<uint32_t>(copy.bytes));
    block.strict->mbarrier_arrived(*copy.warp, copy.lane, reinterpret_cast<uint64_t>(block.shared) + mbarrier);
  }
  return copy.bytes;
}

void BulkCopies::issue(const BulkCopy& copy) {
  const uint32_t thread = thread_of(*copy.warp, copy.lane);
  of_groups_.push_back({copy, thread, committed_[thread]});
}

void BulkCopies::commit(const Warp& warp, Mask lanes) {
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    if ((lanes >> lane & 1) != 0) ++committed_[thread_of(warp, lane)];
  }
}

void BulkCopies::wait(const Warp& warp, Mask lanes, uint32_t pending) {
  std::erase_if(of_groups_, [&](const OfGroup& one) {
    const uint32_t lane = one.thread % warp_lanes;
    if (one.thread / warp_lanes != warp.index || (lanes >> lane & 1) == 0) return false;
    if (one.group + pending >= committed_[one.thread]) return false;
    carry_out(one.copy);
    return true;
  });
}

void BulkCopies::finish(const Warp& warp, Mask lanes) {
  if (of_groups_.empty()) return;
  commit(warp, lanes);
  wait(warp, lanes, 0);
}

}  // namespace kiln::emulator
