#include "all_times.h"

#include <algorithm>
#include <tuple>

namespace kiln::cache {

void AllTimes::front(const DeviceEntry& device, KeyHash, std::span<const FrontEntry> entries) {
  const std::optional<Standing> standing = standings_.standing_of(device);
  if (!standing) return;
  Precedence precedence = standings_.precedence(*standing, *source_, device);
  if (precedence_ && *precedence_ < precedence) return;
  std::vector<TimedVariant> times;
  for (const FrontEntry& entry : entries) {
    if (entry.kind == TimeKind::predicted || !is_current_(*entry.algorithm)) continue;
    times.push_back({entry.algorithm->name, std::string(entry.config), entry.seconds, *standing,
                     source_->origin != Origin::user_database, device.id});
  }
  if (times.empty()) return;
  // Else more of the same: a pack may have a request in pieces.
  if (!precedence_ || precedence < *precedence_) times_.clear();
  precedence.device = device_ = device.id;
  precedence_ = precedence;
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
