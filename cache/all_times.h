// AllTimes: every time that is known of a request, from the source that counts most.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "front.h"
#include "standings.h"
#include "winner_table.h"

namespace kiln::cache {

/// Hears the sources of a Winners one by one. Variants that a record bars, and times of other versions of an algorithm,
/// are left out.
class AllTimes : public FrontVisitor {
 public:
  /// `is_current`: whether times of this version of an algorithm count.
  AllTimes(const Standings& standings, std::function<bool(const AlgorithmVersion&)> is_current)
      : standings_(standings), is_current_(std::move(is_current)) {}

  /// Begins with `source`, which must live on.
  void listen_to(const WinnerSource& source) { source_ = &source; }

  bool wants(const DeviceEntry& device) override { return standings_.serves(device); }
  bool wants_all() const override { return true; }
  void front(const DeviceEntry& device, KeyHash key, std::span<const FrontEntry> entries) override;
  void barred(const DeviceEntry& device, KeyHash key, const BarredEntry& entry) override;

  /// Times of one source and device, fastest first: those of the first in precedence. May be empty.
  std::vector<TimedVariant> best() &&;

 private:
  const Standings& standings_;
  const std::function<bool(const AlgorithmVersion&)> is_current_;
  const WinnerSource* source_ = nullptr;
  std::optional<Precedence> precedence_;  // of `times_`
  std::string device_;                    // which that views
  std::vector<TimedVariant> times_;
  std::set<std::pair<std::string, std::string>> barred_;  // algorithm, config
};

}  // namespace kiln::cache
