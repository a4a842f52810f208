// Capturing streams, and graphs.
#include <algorithm>
#include <memory>

#include "driver.h"
#include "driver/exports.h"
#include "launch.h"

namespace kiln::emulator {
namespace {

/// A node of a graph that still exists.
struct FoundNode {
  std::shared_ptr<NodeReference> reference;
  std::shared_ptr<const Graph> graph;
  const GraphNode& node() const { return graph->nodes[reference->index]; }
};

FoundNode find_node(CUgraphNode handle) {
  FoundNode found;
  found.reference = lookup(Driver::instance().graph_nodes, handle);
  found.graph = found.reference->graph.lock();
  require(found.graph != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return found;
}

CUgraphNodeType type_of(const Work& work) {
  if (std::holds_alternative<KernelWork>(work)) return CU_GRAPH_NODE_TYPE_KERNEL;
  return std::holds_alternative<CopyWork>(work) ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_MEMSET;
}

CUfunction handle_of(const Function& function) {
  Driver& driver = Driver::instance();
  for (const std::shared_ptr<Module>& module : driver.modules.all()) {
    if (module->program != function.program) continue;
    const std::lock_guard lock(module->mutex);
    const auto found = module->functions.find(info(*function.kernel).name);
    if (found != module->functions.end()) return found->second;
  }
  return nullptr;  // its module has been unloaded
}

// `named`: the context to run in; none is the current one, as on a GPU, where without one the process ends.
void set_kernel_parameters(GraphExec& executable, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS& wanted,
                           CUcontext named) {
  const std::shared_ptr<Function> function = lookup(Driver::instance().functions, wanted.func);
  const std::shared_ptr<Context> context = usable_context_of(*function);
  require(context_or_current(named) == context);
  const std::lock_guard lock(executable.mutex);
  const auto node = std::find_if(executable.nodes.begin(), executable.nodes.end(),
                                 [&](const GraphNode& candidate) { return candidate.handle == handle; });
  require(node != executable.nodes.end());
  require(std::holds_alternative<KernelWork>(node->work) && node->context.lock() == context);
  const bool cooperative = std::get<KernelWork>(node->work).cooperative;  // a node keeps its launch's attributes
  node->work = prepare_launch(*context, function,
                              {.grid = {wanted.gridDimX, wanted.gridDimY, wanted.gridDimZ},
                               .block = {wanted.blockDimX, wanted.blockDimY, wanted.blockDimZ},
                               .dynamic_shared_bytes = wanted.sharedMemBytes,
                               .cooperative = cooperative,
                               .parameters = wanted.kernelParams,
                               .extra = wanted.extra});
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return entry([&] {
    require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    Driver::instance().captures.begin(use_stream(stream), mode);
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return entry([&] {
    require(graph != nullptr);
    *graph = nullptr;
    Driver& driver = Driver::instance();
    const std::shared_ptr<Graph> captured = driver.captures.end(use_stream(stream));
    publish_nodes(driver, captured);
    *graph = driver.graphs.add(captured);
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return entry([&] {
    const StreamUse use = use_stream(stream);
    require(status != nullptr);
    *status = Driver::instance().captures.status(use);
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return entry([&] {
    Driver::instance();
    require(mode != nullptr && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    *mode = exchange_thread_mode(*mode);
  });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return entry([&] {
    const std::shared_ptr<Graph> found = lookup(Driver::instance().graphs, graph);
    require(count != nullptr);
    if (nodes == nullptr) {
      *count = found->nodes.size();
      return;
    }
    for (size_t index = 0; index < *count; ++index) {
      nodes[index] = index < found->nodes.size() ? found->nodes[index].handle : nullptr;
    }
    *count = std::min(*count, found->nodes.size());
  });
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return entry([&] {
    require(type != nullptr);
    *type = type_of(find_node(node).node().work);
  });
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  return entry([&] {
    const FoundNode found = find_node(node);
    const auto* kernel = std::get_if<KernelWork>(&found.node().work);
    require(parameters != nullptr && kernel != nullptr);
    std::vector<void*>& values = found.reference->parameters;
    *parameters = {handle_of(*kernel->function),
                   kernel->grid.x,
                   kernel->grid.y,
                   kernel->grid.z,
                   kernel->block.x,
                   kernel->block.y,
                   kernel->block.z,
                   kernel->dynamic_shared_bytes,
                   values.empty() ? nullptr : values.data(),
                   nullptr};
  });
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, KernelNodeParamsV2* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *parameters = {};
  const CUresult result = cuGraphKernelNodeGetParams(node, &parameters->first);
  if (result != CUDA_SUCCESS) return result;
  return entry([&] { parameters->context = usable_context_of(find_node(node).node())->handle(); });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  return entry([&] {
    Driver& driver = Driver::instance();
    const std::shared_ptr<Graph> found = lookup(driver.graphs, graph);
    usable_context_of(*found);
    require(executable != nullptr);
    auto created = std::make_shared<GraphExec>();
    created->context = found->context;
    created->nodes = found->nodes;
    *executable = driver.graph_executables.add(std::move(created));
  });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return entry([&] {
    const std::shared_ptr<GraphExec> found = lookup(Driver::instance().graph_executables, executable);
    require(parameters != nullptr);
    set_kernel_parameters(*found, node, *parameters, nullptr);
  });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const KernelNodeParamsV2* parameters) {
  return entry([&] {
    const std::shared_ptr<GraphExec> found = lookup(Driver::instance().graph_executables, executable);
    require(parameters != nullptr);
    set_kernel_parameters(*found, node, parameters->first, parameters->context);
  });
}

CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
  return entry([&] {  // there is nowhere to upload it to
    lookup(Driver::instance().graph_executables, executable);
    use_stream(stream);
  });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::instance();
    const StreamUse use = use_stream(stream);
    const std::shared_ptr<GraphExec> found = lookup(driver.graph_executables, executable);
    driver.captures.before_synchronising(use);  // a graph within a graph is not supported
    launch_graph(driver, *found, *use.context, *use.stream);
  });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return entry(
      [&] { require(Driver::instance().graph_executables.remove(executable) != nullptr, CUDA_ERROR_INVALID_HANDLE); });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return entry([&] {
    Driver& driver = Driver::instance();
    const std::shared_ptr<Graph> removed = driver.graphs.remove(graph);
    require(removed != nullptr, CUDA_ERROR_INVALID_HANDLE);
    for (const GraphNode& node : removed->nodes) driver.graph_nodes.remove(node.handle);
  });
}

}  // namespace kiln::emulator
