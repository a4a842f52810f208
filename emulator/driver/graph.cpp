#include "driver/graph.h"

#include <algorithm>
#include <utility>

#include "driver/driver.h"

namespace kiln::emulator {
namespace {

/// Pointers to the values that a kernel node would be launched with.
std::vector<void*> parameter_pointers(const GraphNode& node) {
  std::vector<void*> pointers;
  const auto* kernel = std::get_if<KernelWork>(&node.work);
  if (kernel == nullptr) return pointers;
  for (const ParameterSlot& slot : info(*kernel->function->kernel).parameters) {
    // Callers read through these pointers; the driver API has no const.
    pointers.push_back(const_cast<std::byte*>(kernel->parameters.data() + slot.offset));
  }
  return pointers;
}

}  // namespace

void publish_nodes(Driver& driver, const std::shared_ptr<Graph>& graph) {
  for (size_t index = 0; index < graph->nodes.size(); ++index) {
    GraphNode& node = graph->nodes[index];
    auto reference = std::make_shared<NodeReference>();
    reference->context = graph->context;
    reference->graph = graph;
    reference->index = index;
    reference->parameters = parameter_pointers(node);
    node.handle = driver.graph_nodes.add(std::move(reference));
  }
}

void launch_graph(Driver& driver, GraphExec& executable, Context& context, Stream& stream) {
  const std::lock_guard lock(executable.mutex);
  Timeline& timeline = context.device().timeline;
  const Picoseconds start = timeline.record(*stream.track);
  Picoseconds last = start;
  std::vector<Picoseconds> ends;
  for (const GraphNode& node : executable.nodes) {
    const std::shared_ptr<Context> home = node.context.lock();
    require(home != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    Track track;
    track.ready = start;
    for (const size_t earlier : node.after) track.ready = std::max(track.ready, ends[earlier]);
    execute(driver, *home, track, node.work);
    if (!home->is_usable()) return;  // a fault: later calls report it
    ends.push_back(track.ready);
    last = std::max(last, track.ready);
  }
  timeline.wait(*stream.track, last);
}

}  // namespace kiln::emulator
