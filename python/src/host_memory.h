// Tools of a call around the work that it enqueues: the emulated device reaches tensors on the CPU for the time of the
// call, and other streams that its tensors are used on come before it and wait for it.
#pragma once

#include <mutex>
#include <span>
#include <utility>
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

/// The stream of a call, and the current ones of the frameworks whose tensors and memory it uses.
using Streams = std::pair<uintptr_t, std::vector<uintptr_t>>;

/// Puts a call between what other streams have to do before it, and what they get later: those of `streams`, and those
/// that tensors name. So an element is read when it is made, and memory that a framework gives to the next in line of
/// its stream is free by then.
class OtherStreams {
 public:
  /// Before the work is enqueued. Throws DriverError.
  OtherStreams(Context& context, const Streams& streams, std::span<const GivenTensor> tensors);
  /// As join(), but says nothing of a fault.
  ~OtherStreams();
  OtherStreams(const OtherStreams&) = delete;
  OtherStreams& operator=(const OtherStreams&) = delete;

  /// After the work was enqueued. Throws DriverError.
  void join();

 private:
  Context& context_;
  Stream own_;
  std::vector<Stream> others_;
};

/// Calls `enqueue` without the GIL, in order with other streams, while the device reaches `tensors`. Throws DriverError
/// for a fault of what it enqueued on tensors on the CPU.
template <class Enqueue>
void enqueue_on(Context& context, std::span<const GivenTensor> tensors, const Streams& streams,
                const Enqueue& enqueue) {
  without_gil([&] {
    HostTensors reached(context, tensors);
    OtherStreams others(context, streams, tensors);
    enqueue(reinterpret_cast<Stream>(streams.first));
    others.join();
    reached.release();
  });
}

}  // namespace kiln::python
