#include "checks/thread_clocks.h"

#include <algorithm>
#include <bit>

namespace kiln::emulator {
namespace {

constexpr size_t named_barriers = 16;

template <class Use>
void for_each_thread(uint32_t first, Mask lanes, Use use) {
  for (; lanes != 0; lanes &= lanes - 1) use(first + static_cast<uint32_t>(std::countr_zero(lanes)));
}

}  // namespace

ThreadClocks::ThreadClocks(uint32_t threads)
    : known_(threads, Clock(threads)), fenced_(threads), observed_(threads), barriers_(named_barriers) {}

// Knowledge of earlier blocks does no harm: their times are all before this block's.
void ThreadClocks::begin_block() {
  published_.clear();
  for (std::vector<Clock>* clocks : {&fenced_, &observed_, &barriers_}) {
    for (Clock& clock : *clocks) clock.clear();
  }
}

void ThreadClocks::join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t k = 0; k < from.size(); ++k) to[k] = std::max(to[k], from[k]);
}

void ThreadClocks::meet(uint32_t first, Mask lanes, uint32_t now) {
  Clock all;
  for_each_thread(first, lanes, [&](uint32_t thread) { join(all, known_[thread]); });
  for_each_thread(first, lanes, [&](uint32_t thread) { all[thread] = now; });
  for_each_thread(first, lanes, [&](uint32_t thread) { known_[thread] = all; });
}

void ThreadClocks::arrive(uint32_t barrier, uint32_t first, Mask lanes, uint32_t now) {
  Clock& clock = barriers_[barrier];
  for_each_thread(first, lanes, [&](uint32_t thread) {
    join(clock, known_[thread]);
    clock[thread] = now;
  });
}

void ThreadClocks::leave(uint32_t barrier, uint32_t first, Mask lanes) {
  for_each_thread(first, lanes, [&](uint32_t thread) { join(known_[thread], barriers_[barrier]); });
}

void ThreadClocks::acquire(uint32_t thread) {
  if (!observed_[thread].empty()) join(known_[thread], observed_[thread]);
}

void ThreadClocks::release(uint32_t thread, uint32_t now) {
  fenced_[thread] = known_[thread];
  fenced_[thread][thread] = now;
}

void ThreadClocks::publish(uint32_t thread, uint64_t address, bool releases, uint32_t now) {
  if (releases) release(thread, now);
  if (!fenced_[thread].empty()) join(published_[address], fenced_[thread]);
}

void ThreadClocks::observe(uint32_t thread, uint64_t address, bool acquires) {
  const auto found = published_.find(address);
  if (found != published_.end()) join(observed_[thread], found->second);
  if (acquires) acquire(thread);
}

}  // namespace kiln::emulator
