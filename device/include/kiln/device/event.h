// Events: points in a stream's work, and the device time between them.
#pragma once

#include <cuda_abi/driver.h>

#include <memory>
#include <string_view>

#include "kiln/device/context.h"
#include "kiln/device/owned_handle.h"

namespace kiln::device {

/// Beginning of the message of an Error(unsupported) that says why the emulated device knows no time of its work.
inline constexpr std::string_view not_timed = "not timed: ";

/// Whether an event records a time. Without one it is cheaper to wait for.
enum class Timing { recorded, none };

/// A point in a stream's work. Move-only.
class Event {
 public:
  explicit Event(std::shared_ptr<const ContextHandle> context, Timing timing = Timing::recorded);

  cuda_abi::CUevent raw() const { return event_.get(); }

  /// Marks the end of what is enqueued in `stream` now.
  void record(cuda_abi::CUstream stream) const;
  /// Waits until the marked work is done. Throws DriverError, also for a fault of that work.
  void synchronize() const;
  /// True if the marked work is done. Throws DriverError for a fault of that work.
  bool is_done() const;

  /// Device time from `start` to this event, in milliseconds. Both must have recorded times and be done.
  ///
  /// Measured by the device's own clock at a resolution of about 0.5 us; modelled if the device is emulated. Throws
  /// Error(unsupported), "not timed: tensor instructions need nvdisasm", where no clock of the emulated device tells
  /// it.
  double elapsed_ms(const Event& start) const;

 private:
  OwnedHandle<cuda_abi::CUevent> event_;
};

}  // namespace kiln::device
