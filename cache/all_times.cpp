#include "all_times.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "kiln/cache/machine_clock.h"

namespace kiln::cache {

void AllTimes::front(const DeviceEntry& device, KeyHash, std::span<const FrontEntry> entries) {
  const std::optional<Standing> standing = standings_.standing_of(device);
  if (!standing) return;
  const int clock = *standing == Standing::predicted ? machine_clock_of(device.name)->version : 0;
  Rank rank{*standing, source_->origin, source_->order, std::abs(device.sms - standings_.device().sms),
            -clock,    device.id};
  if (rank_ && *rank_ < rank) return;
  std::vector<TimedVariant> times;
  for (const FrontEntry& entry : entries) {
    if (entry.kind == TimeKind::predicted || !is_current_(*entry.algorithm)) continue;
    times.push_back({entry.algorithm->name, std::string(entry.config), entry.seconds, *standing,
                     source_->origin != Origin::user_database, device.id});
  }
  if (times.empty()) return;
  if (!rank_ || rank < *rank_) times_.clear();  // else more of the same: a pack may have a request in pieces
  rank_ = std::move(rank);
  std::move(times.begin(), times.end(), std::back_inserter(times_));
}

void AllTimes::barred(const DeviceEntry&, KeyHash, const BarredEntry& entry) {
  if (is_current_(*entry.algorithm)) barred_.emplace(entry.algorithm->name, entry.config);
}

std::vector<TimedVariant> AllTimes::best() && {
  std::erase_if(times_, [&](const TimedVariant& one) { return barred_.contains({one.algorithm, one.config}); });
  std::ranges::sort(times_, {},
                    [](const TimedVariant& one) { return std::tie(one.seconds, one.algorithm, one.config); });
  return std::move(times_);
}

}  // namespace kiln::cache
