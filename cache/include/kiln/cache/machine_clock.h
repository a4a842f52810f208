// Devices whose times are modelled from machine code, and what these predict (docs/cache-format.md, "Predictions").
#pragma once

#include <optional>
#include <string_view>

#include "kiln/cache/record.h"

namespace kiln::cache {

/// Clock in the name of an emulated device: "Kiln emulated NVIDIA A100 (machine-code clock 1)". The views point into
/// the name.
struct MachineClock {
  std::string_view card;  ///< "NVIDIA A100"
  std::string_view text;  ///< "machine-code clock 1", or "machine-code clock 1 of my_a100" with a user's figures.
  int version = 0;        ///< Version of the time model, from 1.
};

/// Nothing for a real device and for a clock that does not read machine code. `name`: DeviceEntry::name, or the id line
/// of a device, which begins with it in quotes.
std::optional<MachineClock> machine_clock_of(std::string_view name);
/// Nothing too for a device that is not emulated, whatever its name is.
std::optional<MachineClock> machine_clock_of(const DeviceEntry& device);

/// Whether times that were modelled on `model` predict those on `device`: it has a clock that reads machine code, and
/// both are of one card (its name but for the variant, compute capability and number of multiprocessors). The same
/// clock on the same card is no prediction.
bool predicts(const DeviceEntry& model, const DeviceEntry& device);

}  // namespace kiln::cache
