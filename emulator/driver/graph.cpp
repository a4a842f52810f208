#include "graph.h"

#include <algorithm>
#include <utility>

#include "driver.h"

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

/// Sets what the stream's work has left in L2, and returns what it was.
LeftInL2 exchange_left(Context& context, Stream& stream, LeftInL2 left) {
  const std::lock_guard execution(context.execution());
  return std::exchange(stream.track->in_l2, std::move(left));
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
  const LeftInL2 before = exchange_left(context, stream, {});
  std::vector<Track> ends;
  for (const GraphNode& node : executable.nodes) {
    const std::shared_ptr<Context> home = node.context.lock();
    require(home != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    Track track;
    track.ready = start;
    for (const size_t earlier : node.after) track.ready = std::max(track.ready, ends[earlier].ready);
    track.in_l2 = node.after.empty() ? before : ends[*std::max_element(node.after.begin(), node.after.end())].in_l2;
    execute(driver, *home, track, node.work);
    if (!home->is_usable()) return;  // a fault: later calls report it
    last = std::max(last, track.ready);
    ends.push_back(std::move(track));
  }
  timeline.wait(*stream.track, last);
  exchange_left(context, stream, ends.empty() ? before : ends.back().in_l2);
}

}  // namespace kiln::emulator
