// Who makes and who reads the values of a graph, at one time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

class Edges {
 public:
  explicit Edges(const Graph& graph);

  /// The place of the node that makes it; nothing for inputs and constants.
  std::optional<size_t> producer(ValueId id) const { return producers_[id]; }
  /// The places of the nodes that read it, one for each time.
  std::span<const size_t> users(ValueId id) const {
    return {users_.data() + first_user_[id], first_user_[id + 1] - first_user_[id]};
  }
  bool is_output(ValueId id) const { return outputs_[id]; }
  /// The node that alone reads it, once, where it is no output of the model.
  std::optional<size_t> sole_user(ValueId id) const;
  /// Whether it depends on constants only.
  bool is_fixed(ValueId id) const { return fixed_[id]; }

 private:
  std::vector<std::optional<size_t>> producers_;
  std::vector<size_t> users_, first_user_;  // of all values, one behind the other; passes make them anew each change
  std::vector<bool> outputs_, fixed_;
};

/// How `operand` repeats along `whole`, of equal rank, when `whole` becomes `to` of as many elements: the extents of
/// the operand then. Nothing where it repeats along a part of what becomes one dimension, or of what one becomes.
std::optional<Extents> repeated_in(const Extents& operand, const Extents& whole, const Extents& to);

}  // namespace kiln::graph
