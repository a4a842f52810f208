#include "checks/block_order.h"

#include <algorithm>
#include <bit>

namespace kiln::emulator {
namespace {

std::shared_ptr<const BlockClock> later_of(const std::shared_ptr<const BlockClock>& a,
                                           const std::shared_ptr<const BlockClock>& b) {
  if (a == b) return a;
  BlockClock both = *a;
  for (size_t k = 0; k < both.size(); ++k) both[k] = std::max(both[k], (*b)[k]);
  return std::make_shared<const BlockClock>(std::move(both));
}

/// Joins two clocks: takes the later times of the blocks that both have.
LaunchClock joined(const LaunchClock& a, const LaunchClock& b) {
  LaunchClock both;
  both.reserve(a.size() + b.size());
  auto next = b.begin();
  for (const auto& [block, clock] : a) {
    for (; next != b.end() && next->first < block; ++next) both.push_back(*next);
    const bool in_both = next != b.end() && next->first == block;
    both.emplace_back(block, in_both ? later_of(clock, next->second) : clock);
    if (in_both) ++next;
  }
  both.insert(both.end(), next, b.end());
  return both;
}

}  // namespace

void ReleaseTable::publish(uint64_t address, const LaunchClock& clock) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const LaunchClock>& there = published_[address];
  there = std::make_shared<const LaunchClock>(there == nullptr ? clock : joined(*there, clock));
}

std::shared_ptr<const LaunchClock> ReleaseTable::at(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = published_.find(address);
  return found == published_.end() ? nullptr : found->second;
}

BlockOrder::BlockOrder(ReleaseTable& releases, const SharedShadow& time, uint32_t threads)
    : releases_(releases), time_(time), fenced_(threads), observed_(threads) {}

void BlockOrder::begin_block(uint64_t number) {
  block_ = number;
  acquired_.clear();
  unsettled_.clear();
  for (LaunchClock& clock : fenced_) clock.clear();
  for (std::set<uint64_t>& addresses : observed_) addresses.clear();
}

void BlockOrder::acquire(const Acquire& from) {
  const std::shared_ptr<const LaunchClock> clock = releases_.at(from.address);
  if (clock == nullptr || (clock->size() == 1 && clock->front().first == block_)) return;
  const auto is_known = [&](const Acquired& earlier) {
    return earlier.thread == from.thread && earlier.clock == clock;
  };
  if (std::none_of(acquired_.begin(), acquired_.end(), is_known)) acquired_.push_back({from.thread, from.time, clock});
}

void BlockOrder::settle() {
  for (const Acquire& from : unsettled_) acquire(from);
  unsettled_.clear();
}

LaunchClock BlockOrder::known_to(uint32_t thread) const {
  BlockClock own(fenced_.size());
  for (uint32_t k = 0; k < own.size(); ++k) own[k] = time_.known_until(thread, k);
  LaunchClock known = {{block_, std::make_shared<const BlockClock>(std::move(own))}};
  for (const Acquired& from : acquired_) {
    if (time_.in_order_since_start(thread, from.thread, from.time)) known = joined(known, *from.clock);
  }
  return known;
}

void BlockOrder::fenced(uint32_t first, Mask lanes, uint8_t order) {
  settle();
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t thread = first + static_cast<uint32_t>(std::countr_zero(lanes));
    if ((order & order_acquires) != 0) {
      for (const uint64_t address : observed_[thread]) acquire({thread, time_.since_start(), address});
      observed_[thread].clear();
    }
    if ((order & order_releases) != 0) fenced_[thread] = known_to(thread);
  }
}

void BlockOrder::published(uint32_t thread, uint64_t address, bool releases) {
  if (releases) fenced_[thread] = known_to(thread);
  if (!fenced_[thread].empty()) releases_.publish(address, fenced_[thread]);
}

void BlockOrder::observed(uint32_t thread, uint64_t address, bool acquires) {
  if (acquires) {
    unsettled_.push_back({thread, time_.since_start(), address});
  } else {
    observed_[thread].insert(address);
  }
}

bool BlockOrder::knows(uint32_t thread, uint64_t block, uint32_t other, uint32_t time) {
  settle();
  return std::any_of(acquired_.begin(), acquired_.end(), [&](const Acquired& from) {
    const auto found = std::lower_bound(from.clock->begin(), from.clock->end(), block,
                                        [](const auto& entry, uint64_t wanted) { return entry.first < wanted; });
    return found != from.clock->end() && found->first == block && (*found->second)[other] > time &&
           time_.in_order_since_start(thread, from.thread, from.time);
  });
}

bool BlockOrder::has_acquired() {
  settle();
  return !acquired_.empty();
}

}  // namespace kiln::emulator
