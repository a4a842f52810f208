// What lets the emulated device reach tensors on the CPU for the time of one call.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "kiln/memory.h"
#include "tensors.h"
#include "without_gil.h"

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

/// Calls `enqueue` without the GIL, while the device reaches `tensors`. Throws DriverError for a fault of what it
/// enqueued on tensors on the CPU.
template <class Enqueue>
void enqueue_on(Context& context, std::span<const GivenTensor> tensors, const Enqueue& enqueue) {
  without_gil([&] {
    HostTensors reached(context, tensors);
    enqueue();
    reached.release();
  });
}

}  // namespace kiln::python
