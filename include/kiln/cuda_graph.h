// CudaGraph: several calls as one piece of work, which one call of the driver enqueues again and again.
#pragma once

#include <functional>
#include <memory>

#include "kiln/context.h"
#include "kiln/plan.h"

namespace kiln {

/// Captured calls, ready to run with the same addresses and numbers. Move-only; keeps the device's driver and context
/// alive. The captured plans and memory must live as long as the graph is launched. A moved-from graph refuses every
/// call with Error(invalid_argument), until another is assigned to it.
///
/// A CudaGraph may be destroyed while it runs.
class CudaGraph {
 public:
  /// Calls `enqueue` with a stream, and captures all work that it puts into that stream, without running it:
  /// Plan::run(), copies, and operation calls whose plan exists and needs none of the Context's workspace. Other
  /// captures, of this thread or of others, stay intact. Throws Error(invalid_argument) for an empty function,
  /// Error(driver_error) if the driver does not capture, and any exception of `enqueue`.
  CudaGraph(Context& context, const std::function<void(Stream)>& enqueue);
  ~CudaGraph();
  CudaGraph(CudaGraph&&) noexcept;
  CudaGraph& operator=(CudaGraph&&) noexcept;

  /// Enqueues all captured work on `stream`, which must not be captured itself, and returns without waiting. Runs of
  /// one graph follow each other. Throws Error(driver_error). Not for two threads at once.
  void launch(Stream stream = nullptr) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether work enqueued on `stream` goes into a graph instead of running. True also for the default stream while a
/// stream that it waits for is captured.
bool is_captured(Context& context, Stream stream);

}  // namespace kiln
