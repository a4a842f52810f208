// Who makes and who reads the values of a graph, while a pass rewrites it.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

/// While it lives, nodes() of the graph has free slots among its nodes: a rewrite moves the nodes between those that it
/// concerns, and none behind them. Passes change the graph by replace() alone.
class Edges {
 public:
  explicit Edges(Graph& graph);
  ~Edges();  // takes the free slots out
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  /// Index of the node that makes it; nothing for inputs and constants.
  std::optional<size_t> producer(ValueId id) const { return producers_[id]; }
  /// Indices of the nodes that read it, one for each time, in their order.
  const std::multiset<size_t>& users(ValueId id) const { return users_[id]; }
  bool is_output(ValueId id) const { return outputs_[id]; }
  /// The node that alone reads it, once, where it is no output of the model.
  std::optional<size_t> sole_user(ValueId id) const;
  /// Whether it depends on constants only.
  bool is_fixed(ValueId id) const { return fixed_[id]; }

  bool is_free(size_t index) const { return free_[index]; }
  /// Index of the first node at `index` or behind it; the number of slots if there is none.
  size_t first_from(size_t index);

  /// Takes the nodes at `indices` away, and puts `nodes` where the last of them was. The nodes between move towards the
  /// first of them. Returns the index of the first of `nodes`.
  size_t replace(const std::set<size_t>& indices, std::vector<Node> nodes = {});

  /// Slots that replace() and first_from() have looked at so far.
  size_t work() const { return work_; }

 private:
  void connect_all();
  void connect(size_t index);
  void disconnect(size_t index);
  void move(size_t from, size_t to);
  void see_fixed(size_t index);
  void make_room_behind(size_t last, size_t count);

  Graph& graph_;
  std::vector<std::optional<size_t>> producers_;
  std::vector<std::multiset<size_t>> users_;
  std::vector<bool> outputs_, fixed_;  // of values
  std::vector<bool> free_;             // of slots
  size_t work_ = 0;
};

/// How `operand` repeats along `whole`, of equal rank, when `whole` becomes `to` of as many elements: the extents of
/// the operand then. Nothing where it repeats along a part of what becomes one dimension, or of what one becomes.
std::optional<Extents> repeated_in(const Extents& operand, const Extents& whole, const Extents& to);

}  // namespace kiln::graph
