#include "async_completion.h"

#include <bit>

#include "checks/strict.h"

namespace kiln::emulator {
namespace {

template <uint32_t bytes>
void copy_lanes(const AsyncCopies::Copy& copies, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(lanes));
    bring(copies, lane, bytes, reinterpret_cast<std::byte*>(copies.to[lane]));
  }
}

void carry_out(const Warp& warp, const AsyncCopies::Copy& copies, Mask lanes) {
  switch (copies.bytes) {
    case 4:
      copy_lanes<4>(copies, lanes);
      break;
    case 8:
      copy_lanes<8>(copies, lanes);
      break;
    default:
      copy_lanes<16>(copies, lanes);
      break;
  }
  if (warp.block->strict != nullptr) warp.block->strict->copies_landed(warp, copies, lanes);
}

}  // namespace

void complete_copies(Warp& warp, Mask lanes, uint32_t pending) {
  warp.copies.take(lanes, pending, [&](const AsyncCopies::Copy& copy, Mask due) { carry_out(warp, copy, due); });
}

void complete_all_copies(Warp& warp, Mask lanes) {
  warp.copies.take_all(lanes, [&](const AsyncCopies::Copy& copy, Mask due) { carry_out(warp, copy, due); });
}

}  // namespace kiln::emulator
