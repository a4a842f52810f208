// What the passes over one graph may take: small files can ask for much time and memory.
#pragma once

#include <cstdint>

#include "kiln/graph/graph.h"

namespace kiln::graph {

class Effort {
 public:
  /// To be called behind each change, which makes a pass look at all nodes again. Whether it may make another: graphs
  /// of up to 11,000 nodes may have one at each node, and larger ones fewer.
  bool may_go_on(const Graph& graph) {
    nodes_ += graph.nodes().size();
    return nodes_ < most_nodes_seen;
  }

  /// Whether so many elements more may become constants that no file holds; then they count.
  bool take_elements(int64_t elements) {
    if (elements > most_elements_made - elements_) return false;
    elements_ += elements;
    return true;
  }

 private:
  static constexpr size_t most_nodes_seen = size_t{1} << 27;  // at some 30 ns each
  static constexpr int64_t most_elements_made = int64_t{1} << 26;

  size_t nodes_ = 0;
  int64_t elements_ = 0;
};

}  // namespace kiln::graph
