// What lets the emulated device reach tensors on the CPU for the time of one call.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "kiln/memory.h"
#include "tensors.h"

namespace kiln::python {

/// Registers exactly the bytes of those of `tensors` that lie in ordinary memory of the host, so that a kernel that
/// leaves them is still reported. Other calls on the host's memory wait meanwhile, as the device itself would have them
/// wait: made without the GIL. Work is done when the call that enqueues it returns, so this need not live longer.
class HostTensors {
 public:
  HostTensors(Context& context, std::span<const GivenTensor> tensors);

  /// After the work was enqueued. Throws DriverError for a fault of it.
  void release();

 private:
  std::unique_lock<std::mutex> alone_;
  std::vector<RegisteredMemory> registered_;
};

}  // namespace kiln::python
