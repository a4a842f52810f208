// Standings: what times and failures of other devices are worth to the device at hand.
#pragma once

#include <optional>
#include <utility>

#include "kiln/cache/record.h"
#include "kiln/cache/winners.h"

namespace kiln::cache {

/// Immutable.
class Standings {
 public:
  explicit Standings(DeviceEntry device) : device_(std::move(device)) {}

  const DeviceEntry& device() const { return device_; }

  /// Standing of times of `device`; nothing where they say nothing of the device at hand.
  std::optional<Standing> standing_of(const DeviceEntry& device) const;
  /// Standing of its failures: correctness does not depend on the clock.
  Standing authority_of(const DeviceEntry& device) const;
  /// Whether its times or its failures matter here.
  bool serves(const DeviceEntry& device) const;

 private:
  bool is_same_architecture(const DeviceEntry& device) const;
  bool has_same_clock(const DeviceEntry& device) const;

  const DeviceEntry device_;
};

}  // namespace kiln::cache
