// A card of what a device was measured to reach, for the clock that reads machine code.
#pragma once

#include <string>

#include "json.h"
#include "kiln/calibration/calibrate.h"
#include "kiln/device/device.h"
#include "kiln/timing/user_card.h"
#include "output.h"

namespace kiln::cli {

/// The built-in card that a device is like. Throws Error(invalid_argument) if there is none of its compute capability,
/// and for an emulated device whose times come from PTX alone: those are of no card.
std::string base_of_card(const device::DeviceInfo& info);

/// Card of base_of_card() with the driver's figures and those of `findings` in place of its own, as far as both mean
/// the same. `driver_version`: "13.0"; `date`: "2026-11-23". Throws as base_of_card().
timing::UserCard measured_card(const device::DeviceInfo& info, const calibration::Findings& findings,
                               const std::string& driver_version, const std::string& date);

/// Found figures, beside those of the built-in card, and the names of the figures that are kept. Ends with a line feed.
std::string card_text(const timing::UserCard& card, const Output& output);

/// The same: `file`, `base`, `figures` (`name`, `value`, `base_value`, `source`), `kept`.
Json card_json(const timing::UserCard& card, const std::string& file);

}  // namespace kiln::cli
