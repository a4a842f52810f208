#include "warp/async_copies.h"

#include <bit>

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

}  // namespace kiln::emulator
