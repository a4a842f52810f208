// The traffic of one operation on the emulated device, as its counters have it.
#pragma once

#include <memory>
#include <string>

#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/catalogue.h"

namespace kiln::bench {

/// Bytes that one call moved, summed over its launches.
struct Traffic {
  std::string algorithm;  ///< Kiln's choice where nothing was measured.
  size_t launches = 0;
  int64_t workspace_bytes = 0;
  /// In 32-byte sectors: each that a launch reads once, each that it writes once, whatever its size and however often
  /// it is touched. Clearing the workspace writes it.
  double unique_bytes = 0;
  /// The same of every sector of every access of a warp; over unique_bytes it is how often caches have to help.
  double requested_bytes = 0;
};

/// Compiles requests for the emulated device and runs them there. For one thread at a time.
class TrafficMeter {
 public:
  /// `driver` and `nvrtc` as in DriverChoice and NvrtcChoice; the driver must be the emulated one, and not yet in use
  /// in this process: it is told (KILN_EMULATOR_COUNTED_BLOCKS) to count all blocks of every launch. Throws
  /// Error(unsupported) for another driver.
  TrafficMeter(const std::string& driver, const device::NvrtcChoice& nvrtc);

  /// Runs `request` once. Throws Error as Catalogue::heuristic(), compile() and Executable do.
  Traffic measure(const Request& request) const;

  /// The device, as DeviceInfo::id(), and the compiler.
  std::string description() const;

 private:
  using LastLaunch = const char*();

  LastLaunch* last_launch_ = nullptr;
  std::shared_ptr<const device::ContextHandle> context_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;
  Catalogue catalogue_;
  Target target_;
  DeviceFigures figures_;
};

}  // namespace kiln::bench
