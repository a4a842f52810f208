// CudaGraph: several calls as one piece of work, which is enqueued again and again by one call of the driver.
#pragma once

#include <functional>
#include <memory>

#include "kiln/context.h"
#include "kiln/plan.h"

namespace kiln {

/// Calls that were captured once, ready to run with the same addresses and numbers. Move-only; keeps the device's
/// driver and context alive, but not what it was captured of: plans and memory must live as long as it is launched. One
/// that was moved from refuses every call with Error(invalid_argument), until another is assigned to it.
///
/// It may end while it runs.
class CudaGraph {
 public:
  /// Captures what `enqueue` puts into the stream that it is given: Plan::run(), operation calls whose plan is there
  /// and which need none of the Context's workspace, copies. None of it runs. Captures that are going on, of this
  /// thread and of others, stay intact. Throws Error(invalid_argument) for an empty function, Error(driver_error)
  /// where the driver does not capture, and what `enqueue` throws.
  CudaGraph(Context& context, const std::function<void(Stream)>& enqueue);
  ~CudaGraph();
  CudaGraph(CudaGraph&&) noexcept;
  CudaGraph& operator=(CudaGraph&&) noexcept;

  /// Enqueues all of it on `stream`, which must not be captured itself, and returns. Runs of one graph follow each
  /// other. Throws Error(driver_error). Not for two threads at once.
  void launch(Stream stream = nullptr) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether what is enqueued on `stream` goes into a graph instead of running; also for the default stream while a
/// stream that it waits for is captured.
bool is_captured(Context& context, Stream stream);

}  // namespace kiln
