// kiln devices --calibrate: what a device reaches.
#pragma once

#include "device_choice.h"

namespace kiln::cli {

struct CalibrateOptions {
  DeviceChoice device;
  bool json = false;
};

/// Measures and prints. Returns the exit code; throws Error.
int calibrate_device(const CalibrateOptions& options);

}  // namespace kiln::cli
