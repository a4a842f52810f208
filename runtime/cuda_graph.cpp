#include "kiln/cuda_graph.h"

#include "context_impl.h"
#include "kiln/base/error.h"
#include "kiln/device/cuda_graph.h"
#include "kiln/device/stream.h"

namespace kiln {
namespace {

const std::function<void(Stream)>& required(const std::function<void(Stream)>& enqueue) {
  if (!enqueue) {
    throw Error(ErrorCode::invalid_argument, "CudaGraph: the function to capture is empty",
                "give one that enqueues calls on the stream that it gets");
  }
  return enqueue;
}

}  // namespace

struct CudaGraph::Impl {
  device::CudaGraph graph;
};

CudaGraph::CudaGraph(Context& context, const std::function<void(Stream)>& enqueue)
    : impl_(new Impl{device::CudaGraph(context.impl().device(), required(enqueue))}) {}
CudaGraph::~CudaGraph() = default;
CudaGraph::CudaGraph(CudaGraph&&) noexcept = default;
CudaGraph& CudaGraph::operator=(CudaGraph&&) noexcept = default;

void CudaGraph::launch(Stream stream) const {
  if (!impl_) {
    throw Error(ErrorCode::invalid_argument, "this CudaGraph was moved from", "use the one that it was moved to");
  }
  impl_->graph.launch(static_cast<cuda_abi::CUstream>(stream));
}

bool is_captured(Context& context, Stream stream) {
  return context.impl().is_captured(stream);
}

}  // namespace kiln
