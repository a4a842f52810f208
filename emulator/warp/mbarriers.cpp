#include "warp/mbarriers.h"

namespace kiln::emulator {

void Mbarriers::clear() {
  at_.clear();
  rounds_without_progress_ = 0;
}

void Mbarriers::init(uint64_t offset, uint32_t arrivals) {
  at_[offset] = {.expected = arrivals, .pending = arrivals};
  note_progress();
}

void Mbarriers::invalidate(uint64_t offset) {
  at_.erase(offset);
  note_progress();
}

Mbarrier* Mbarriers::find(uint64_t offset) {
  const auto found = at_.find(offset);
  return found == at_.end() ? nullptr : &found->second;
}

}  // namespace kiln::emulator
