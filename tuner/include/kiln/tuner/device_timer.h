// DeviceTimer: how long runs of a variant take on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kiln/checking/device_operands.h"
#include "kiln/device/context.h"
#include "kiln/device/event.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"

namespace kiln::tuner {

/// State of the L2 when a run begins.
enum class L2 {
  cold,  ///< A buffer of twice its size is written before each run; on an emulated device a word does it.
  warm,  ///< The run before left its data there.
};

/// Not thread-safe. Waits for the device.
class DeviceTimer {
 public:
  /// Before the timed runs of a call, and not timed. An emulated device needs none: code and clock are always ready.
  static constexpr int warm_up_runs = 1;

  explicit DeviceTimer(std::shared_ptr<const device::ContextHandle> context);

  /// Seconds of `count` runs of `variant` at the full batch, each by itself, after `warm_up_runs`. Preparation of
  /// constant weights is not timed. `operands` were uploaded. Throws DriverError if the device reports a fault (then
  /// the context may be lost).
  std::vector<double> time(const checking::DeviceOperands& operands, const checking::Checkable& variant, int count,
                           L2 l2);

  /// Runs it once more, from a cold L2, and returns what an emulated device tells of the launches:
  /// Driver::launches_json(). `traced_instructions`: as many of each launch are recorded, Driver::trace_launches().
  std::string launches_json(const checking::DeviceOperands& operands, const checking::Checkable& variant,
                            uint64_t traced_instructions = 0);

 private:
  void flush_l2();

  std::shared_ptr<const device::ContextHandle> context_;
  device::Stream stream_;
  device::Event start_, end_;
  device::Buffer flush_;
};

}  // namespace kiln::tuner
