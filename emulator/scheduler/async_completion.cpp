#include "async_completion.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "checks/strict.h"

namespace kiln::emulator {
namespace {

void carry_out(const Warp& warp, const AsyncCopies::Copy& copy, Mask lanes) {
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

}  // namespace

void complete_copies(Warp& warp, Mask lanes, uint32_t pending) {
  warp.copies.take(lanes, pending, [&](const AsyncCopies::Copy& copy, Mask due) { carry_out(warp, copy, due); });
}

void complete_all_copies(Warp& warp, Mask lanes) {
  warp.copies.take_all(lanes, [&](const AsyncCopies::Copy& copy, Mask due) { carry_out(warp, copy, due); });
}

}  // namespace kiln::emulator
