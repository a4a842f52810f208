// Limits on the passes over one graph: small files can ask for much time and memory.
#pragma once

#include <cstdint>

#include "edges.h"

namespace kiln::graph {

class Effort {
 public:
  /// Whether a pass may make another change. One takes the time of what stands between the nodes that it concerns: a
  /// graph of 2,900 nodes may have the farthest at each node, and a larger one as many of the usual kind as it has
  /// nodes.
  static bool may_go_on(const Edges& edges) { return edges.work() < most_work; }

  /// Whether so many elements more may become constants that no file holds; then they count.
  bool take_elements(int64_t elements) {
    if (elements > most_elements_made - elements_) return false;
    elements_ += elements;
    return true;
  }

 private:
  static constexpr size_t most_work = size_t{1} << 23;  // at some 300 ns each
  static constexpr int64_t most_elements_made = int64_t{1} << 26;

  int64_t elements_ = 0;
};

}  // namespace kiln::graph
