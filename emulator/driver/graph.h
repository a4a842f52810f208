// Graphs: recorded work with its order, and executable copies of it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device_work.h"

namespace kiln::emulator {

struct GraphNode {
  std::weak_ptr<Context> context;
  Work work;
  std::vector<size_t> after;  ///< indices of the nodes it depends on, all lower than its own
  CUgraphNode handle = nullptr;
};

/// Work that a capture recorded. Nodes are only added while it is captured; then it is immutable.
struct Graph {
  std::weak_ptr<Context> context;
  std::vector<GraphNode> nodes;
};

/// The node that a handle stands for.
struct NodeReference {
  std::weak_ptr<Context> context;
  std::weak_ptr<const Graph> graph;
  size_t index = 0;
  std::vector<void*> parameters;  ///< of a kernel: to each parameter's value in the node
};

/// An executable graph: nodes of its own, whose parameters may change between launches.
struct GraphExec {
  std::weak_ptr<Context> context;
  std::mutex mutex;  ///< guards nodes, and is held during a launch: launches of one executable follow each other
  std::vector<GraphNode> nodes;
};

/// Gives the nodes of a finished graph their handles.
void publish_nodes(Driver& driver, const std::shared_ptr<Graph>& graph);

/// Executes the nodes in an order that respects their dependencies. In modelled time, each starts when those it depends
/// on have ended, and `stream` goes on when all have.
void launch_graph(Driver& driver, GraphExec& executable, Context& context, Stream& stream);

}  // namespace kiln::emulator
