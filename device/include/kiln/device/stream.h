// Streams that Kiln owns, and queries about streams that it does not.
#pragma once

#include <cuda_abi/driver.h>

#include <memory>

#include "kiln/device/context.h"
#include "kiln/device/owned_handle.h"

namespace kiln::device {

class Event;

/// A stream of its own. Does not synchronise with the default stream. Move-only.
class Stream {
 public:
  explicit Stream(std::shared_ptr<const ContextHandle> context);

  cuda_abi::CUstream raw() const { return stream_.get(); }

  /// Waits for all work enqueued so far. Throws DriverError, also for a fault of that work.
  void synchronize() const;
  /// True if all work enqueued so far is done. Throws DriverError for a fault of that work.
  bool is_idle() const;
  /// Later work of this stream starts after `event`.
  void wait(const Event& event) const;

 private:
  OwnedHandle<cuda_abi::CUstream> stream_;
};

/// Later work of `stream` starts after `event`; at once if it was never recorded. Throws DriverError.
void wait(const ContextHandle& context, cuda_abi::CUstream stream, const Event& event);

/// Waits for all work enqueued on `stream` so far. Throws DriverError, also for a fault of that work.
void synchronize(const ContextHandle& context, cuda_abi::CUstream stream);

/// True if launches into `stream` are being recorded into a graph; also for the default stream while a stream that it
/// waits for is captured, when a launch would spoil that capture. Asking spoils nothing.
bool is_capturing(const ContextHandle& context, cuda_abi::CUstream stream);

}  // namespace kiln::device
