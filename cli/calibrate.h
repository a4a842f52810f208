// kiln devices --calibrate: what a device reaches.
#pragma once

#include <string>

#include "device_choice.h"
#include "output.h"

namespace kiln::cli {

struct CalibrateOptions {
  DeviceChoice device;
  std::string database;  ///< Empty: that of tuning.
  std::string card;      ///< File for a card of what was found. Empty: none.
  Output output;
};

/// Measures, prints, writes the card, and keeps the figures in the tuning database, for predictions. Returns the exit
/// code; throws Error.
int calibrate_device(const CalibrateOptions& options);

}  // namespace kiln::cli
