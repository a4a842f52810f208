// Times one side of a comparison: laps round all sets of operands.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "kiln/device/context.h"
#include "kiln/device/event.h"
#include "kiln/device/owned_handle.h"
#include "kiln/device/stream.h"

namespace kiln::bench {

/// How the runs of a lap are started.
enum class Start {
  graph,   ///< Recorded once and replayed as a CUDA graph: between short kernels there is no gap of the host's making.
  direct,  ///< One by one.
};

/// Enqueues one run on set number `set`.
using EnqueueRun = std::function<void(cuda_abi::CUstream stream, size_t set)>;

/// A lap is one run on each set. Not copyable; the stream and what `enqueue` uses must outlive it.
class LapTimer {
 public:
  /// With Start::graph, throws DriverError if the runs cannot be captured.
  LapTimer(std::shared_ptr<const device::ContextHandle> context, const device::Stream& stream, size_t sets,
           EnqueueRun enqueue, Start start);

  /// Device seconds of one run: a lap's, divided by its runs.
  double seconds_per_run();

 private:
  void enqueue_lap();
  void capture();

  std::shared_ptr<const device::ContextHandle> context_;
  const device::Stream& stream_;
  size_t sets_;
  EnqueueRun enqueue_;
  device::OwnedHandle<cuda_abi::CUgraph> graph_;
  device::OwnedHandle<cuda_abi::CUgraphExec> executable_;
  device::Event begin_, end_;
};

}  // namespace kiln::bench
