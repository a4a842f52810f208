#include "scheduler/async_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "checks/strict.h"
#include "scheduler/warp.h"

namespace kiln::emulator {

void AsyncCopies::clear() {
  copies_.clear();
  committed_.fill(0);
}

void AsyncCopies::issue(const Instruction* at, Mask lanes, uint32_t bytes, const Addresses& to, const Addresses& from,
                        const Addresses& source_bytes) {
  // Lanes nearly always have the same number of groups behind them; those that differ get an entry of their own.
  while (lanes != 0) {
    const uint32_t group = committed_[std::countr_zero(lanes)];
    Mask same = 0;
    for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
      if ((lanes >> lane & 1) != 0 && committed_[lane] == group) same |= Mask{1} << lane;
    }
    copies_.push_back({at, same, bytes, group, to, from, source_bytes});
    lanes &= ~same;
  }
}

void AsyncCopies::commit(Mask lanes) {
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) committed_[lane] += lanes >> lane & 1;
}

void AsyncCopies::wait(const Warp& warp, Mask lanes, uint32_t pending) {
  for (Copy& copy : copies_) {
    Mask due = 0;
    for (Mask rest = copy.lanes & lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (uint64_t{copy.group} + pending < committed_[lane]) due |= Mask{1} << lane;
    }
    complete(warp, copy, due);
  }
  std::erase_if(copies_, [](const Copy& copy) { return copy.lanes == 0; });
}

void AsyncCopies::wait_all(const Warp& warp, Mask lanes) {
  for (Copy& copy : copies_) complete(warp, copy, copy.lanes & lanes);
  std::erase_if(copies_, [](const Copy& copy) { return copy.lanes == 0; });
}

void AsyncCopies::complete(const Warp& warp, Copy& copy, Mask lanes) {
  copy.lanes &= ~lanes;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    auto* const to = reinterpret_cast<std::byte*>(copy.to[lane]);
    const uint64_t wanted = std::min<uint64_t>(copy.source_bytes[lane], copy.bytes);
    std::memcpy(to, reinterpret_cast<const void*>(copy.from[lane]), wanted);
    std::memset(to + wanted, 0, copy.bytes - wanted);
    if (warp.block->strict != nullptr) {
      warp.block->strict->copy_landed(warp, copy.at, static_cast<uint32_t>(lane), copy.to[lane], copy.bytes, false);
    }
  }
}

}  // namespace kiln::emulator
