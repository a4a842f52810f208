#include "lap_timer.h"

#include <utility>

namespace kiln::bench {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the names of the interface spoken here
using device::DriverTable;

LapTimer::LapTimer(std::shared_ptr<const device::ContextHandle> context, const device::Stream& stream, size_t sets,
                   EnqueueRun enqueue, Start start)
    : context_(std::move(context)),
      stream_(stream),
      sets_(sets),
      enqueue_(std::move(enqueue)),
      begin_(context_),
      end_(context_) {
  if (start == Start::graph) capture();
}

void LapTimer::capture() {
  const device::Driver& driver = context_->driver();
  driver.check(
      context_->call(&DriverTable::cuStreamBeginCapture_v2, stream_.raw(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      "cuStreamBeginCapture", "a lap");
  CUgraph graph = nullptr;
  try {
    for (size_t set = 0; set < sets_; ++set) enqueue_(stream_.raw(), set);
  } catch (...) {
    context_->call(&DriverTable::cuStreamEndCapture, stream_.raw(),
                   &graph);  // the capture must not outlive the attempt
    graph_ = {context_, graph, &DriverTable::cuGraphDestroy, "cuGraphDestroy"};
    throw;
  }
  const CUresult ended = context_->call(&DriverTable::cuStreamEndCapture, stream_.raw(), &graph);
  graph_ = {context_, graph, &DriverTable::cuGraphDestroy, "cuGraphDestroy"};
  driver.check(ended, "cuStreamEndCapture", "a lap");
  CUgraphExec executable = nullptr;
  driver.check(context_->call(&DriverTable::cuGraphInstantiateWithFlags, &executable, graph, 0ULL),
               "cuGraphInstantiate", "a lap");
  executable_ = {context_, executable, &DriverTable::cuGraphExecDestroy, "cuGraphExecDestroy"};
}

void LapTimer::enqueue_lap() {
  if (executable_.get() != nullptr) {
    context_->driver().check(context_->call(&DriverTable::cuGraphLaunch, executable_.get(), stream_.raw()),
                             "cuGraphLaunch", "a lap");
    return;
  }
  for (size_t set = 0; set < sets_; ++set) enqueue_(stream_.raw(), set);
}

double LapTimer::seconds_per_run() {
  begin_.record(stream_.raw());
  enqueue_lap();
  end_.record(stream_.raw());
  end_.synchronize();
  return end_.elapsed_ms(begin_) * 1e-3 / static_cast<double>(sets_);
}

}  // namespace kiln::bench
