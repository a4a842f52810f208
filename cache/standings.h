// Standings: what times and failures of other devices are worth to the device at hand.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "kiln/cache/record.h"
#include "kiln/cache/winners.h"
#include "winner_table.h"

namespace kiln::cache {

/// Place of what one source has from one device, in the order of precedence: the least comes first. Within a Standing
/// the layer comes first: the user's own database wins over packs.
struct Precedence {
  Standing standing = Standing::measured_here;
  Origin origin = Origin::user_database;
  std::size_t order = 0;
  int sm_distance = 0;  ///< |SMs of the device - SMs of the device at hand|.
  int clock = 0;        ///< Less for a newer clock that predicts.
  std::string_view device{};

  auto operator<=>(const Precedence&) const = default;
};

/// Immutable.
class Standings {
 public:
  explicit Standings(DeviceEntry device) : device_(std::move(device)) {}

  const DeviceEntry& device() const { return device_; }

  /// Standing of times of `device`; nothing where they say nothing of the device at hand.
  std::optional<Standing> standing_of(const DeviceEntry& device) const;
  /// The place of times of that standing; the view is into `device`.
  Precedence precedence(Standing standing, const WinnerSource& source, const DeviceEntry& device) const;
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
