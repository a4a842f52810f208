#include "kiln/device/cuda_graph.h"

#include "kiln/device/stream.h"

namespace kiln::device {

using cuda_abi::CUgraph;
using cuda_abi::CUgraphExec;
using cuda_abi::CUstream;

namespace {

using OwnedGraph = OwnedHandle<CUgraph>;

OwnedGraph owned(std::shared_ptr<const ContextHandle> context, CUgraph graph) {
  return {std::move(context), graph, &DriverTable::cuGraphDestroy, "cuGraphDestroy"};
}

// The mode concerns what other threads may do meanwhile: everything.
OwnedGraph captured(const std::shared_ptr<const ContextHandle>& context, const std::function<void(CUstream)>& enqueue) {
  const Stream stream(context);
  const Driver& driver = context->driver();
  driver.check(
      context->call(&DriverTable::cuStreamBeginCapture_v2, stream.raw(), cuda_abi::CU_STREAM_CAPTURE_MODE_RELAXED),
      "cuStreamBeginCapture", "a stream");
  CUgraph graph = nullptr;
  try {
    enqueue(stream.raw());
  } catch (...) {
    (void)context->call(&DriverTable::cuStreamEndCapture, stream.raw(), &graph);
    const OwnedGraph unfinished = owned(context, graph);
    throw;
  }
  driver.check(context->call(&DriverTable::cuStreamEndCapture, stream.raw(), &graph), "cuStreamEndCapture", "a stream");
  return owned(context, graph);
}

}  // namespace

CudaGraph::CudaGraph(std::shared_ptr<const ContextHandle> context, const std::function<void(CUstream)>& enqueue) {
  const BesideCaptures beside(context->driver());
  const OwnedGraph graph = captured(context, enqueue);
  CUgraphExec executable = nullptr;
  context->driver().check(context->call(&DriverTable::cuGraphInstantiateWithFlags, &executable, graph.get(), 0ULL),
                          "cuGraphInstantiate", "a graph");
  executable_ = {std::move(context), executable, &DriverTable::cuGraphExecDestroy, "cuGraphExecDestroy"};
}

void CudaGraph::launch(CUstream stream) const {
  const ContextHandle& context = *executable_.context();
  context.driver().check(context.call(&DriverTable::cuGraphLaunch, executable_.get(), stream), "cuGraphLaunch",
                         "a graph");
}

}  // namespace kiln::device
