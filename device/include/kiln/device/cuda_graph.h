// CUDA graphs: work that is captured once, and enqueued again by one call of the driver.
#pragma once

#include <cuda_abi/driver.h>

#include <functional>
#include <memory>

#include "kiln/device/context.h"
#include "kiln/device/owned_handle.h"

namespace kiln::device {

/// Captured work, ready to run. Move-only. May end while it runs: the driver waits with what that needs.
class CudaGraph {
 public:
  /// Captures what `enqueue` puts into the stream that it is given, and executes nothing of it. This stream
  /// synchronises with no other, and captures that are going on, of this thread and of others, stay intact. Throws
  /// DriverError, and what `enqueue` throws.
  CudaGraph(std::shared_ptr<const ContextHandle> context, const std::function<void(cuda_abi::CUstream)>& enqueue);

  /// Enqueues the work on `stream` and returns: with the values and addresses that it was captured with, after what was
  /// launched of this graph before. Throws DriverError.
  void launch(cuda_abi::CUstream stream) const;

 private:
  OwnedHandle<cuda_abi::CUgraphExec> executable_;
};

}  // namespace kiln::device
