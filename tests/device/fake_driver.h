// A driver of which a test decides what each call returns, and which remembers what was called.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/device/context.h"
#include "kiln/device/driver.h"

namespace kiln::device {

/// The driver API has no user data, so a fake's state must stand where plain functions reach it: one per thread.
struct FakeDriver {
  FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  ~FakeDriver();

  /// The entry points that succeed; a test replaces those it wants to fail.
  DriverTable table;
  /// Calls that change something, in order: "alloc 64", "free 4096", "push 1", "pop", "retain", "release".
  std::vector<std::string> calls;
  /// Current contexts of this thread, the innermost last, as small numbers.
  std::vector<int> contexts;
  /// Capture mode of this thread: which calls it may make beside captures.
  cuda_abi::CUstreamCaptureMode capture_mode = cuda_abi::CU_STREAM_CAPTURE_MODE_GLOBAL;
  int version = 13000;
  int devices = 1;

  std::shared_ptr<const Driver> driver() const { return Driver::from_table(table, "the fake driver"); }
  /// The context of device 0.
  std::shared_ptr<const ContextHandle> context() const { return ContextHandle::acquire(Device(driver(), 0)); }
};

/// Adds to the calls of this thread's FakeDriver; for entry points that tests write.
cuda_abi::CUresult note(std::string call);

}  // namespace kiln::device
