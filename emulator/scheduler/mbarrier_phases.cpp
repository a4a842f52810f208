#include "mbarrier_phases.h"

#include "checks/strict.h"
#include "scheduler/bulk_copies.h"
#include "scheduler/mbarrier_instructions.h"
#include "warp/fragments.h"

namespace kiln::emulator {
namespace {

/// Calls use(warp, fragment) for each that waits for the mbarrier at `offset`.
template <class Use>
void each_waiting(Block& block, uint64_t offset, Use use) {
  for (Warp& warp : block.warps) {
    bool any = false;
    for (uint32_t k = 0; k < warp.fragment_count; ++k) {
      Fragment& fragment = warp.fragments[k];
      if (fragment.wait != Wait::mbarrier || fragment.offset != offset) continue;
      use(warp, fragment);
      any = true;
    }
    if (any) refresh_merge_point(warp);
  }
}

/// Ends the fragment's wait: `holds` is what its instruction says.
void deliver(const Warp& warp, Fragment& fragment, bool holds) {
  Mask& result = *row<Mask>(warp, (fragment.at - 1)->d);
  result = holds ? result | fragment.lanes : result & ~fragment.lanes;
  fragment.wait = Wait::none;
}

void end_phase(Block& block, uint64_t offset, Mbarrier& mbarrier) {
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.expected;
  each_waiting(block, offset, [&](Warp& warp, Fragment& fragment) {
    const bool acquires = ((fragment.at - 1)->immediate & wait_acquires) != 0;
    if (block.strict != nullptr && acquires) {
      block.strict->mbarrier_passed(warp, fragment.lanes, reinterpret_cast<uint64_t>(block.shared) + offset);
    }
    deliver(warp, fragment, true);
  });
}

}  // namespace

void settle_mbarrier(Block& block, uint64_t offset, bool awaited) {
  Mbarrier& mbarrier = *block.mbarriers->find(offset);
  if (mbarrier.pending == 0 && mbarrier.bytes > 0 && !awaited) {
    each_waiting(block, offset, [&](Warp&, Fragment&) { awaited = true; });
  }
  while (mbarrier.pending == 0 && mbarrier.bytes > 0 && awaited) {
    const uint64_t bytes = block.bulk_copies->bring_next(block, offset);
    if (bytes == 0) break;
    mbarrier.bytes -= static_cast<int64_t>(bytes);
  }
  if (mbarrier.is_complete()) end_phase(block, offset, mbarrier);
}

bool let_waits_run_out(Block& block) {
  // A loop that waits in vain and does something else in between may be what others wait for: for a while. In a
  // cooperative launch those others may be blocks that have much to do.
  const uint32_t most_rounds = block.launch->cooperative ? 1'000'000 : 1'000;
  bool any = false;
  for (const Warp& warp : block.warps) {
    for (uint32_t k = 0; k < warp.fragment_count; ++k) any = any || warp.fragments[k].wait == Wait::mbarrier;
  }
  if (!any || block.mbarriers->next_round() > most_rounds) return false;
  for (Warp& warp : block.warps) {
    for (uint32_t k = 0; k < warp.fragment_count; ++k) {
      if (warp.fragments[k].wait == Wait::mbarrier) deliver(warp, warp.fragments[k], false);
    }
    refresh_merge_point(warp);
  }
  return true;
}

}  // namespace kiln::emulator
