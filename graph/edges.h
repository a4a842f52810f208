// Who makes and who reads the values of a graph, while a pass rewrites it.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

/// While it lives, nodes() of the graph has free places among its nodes: a rewrite moves what stands between the nodes
/// that it concerns, and nothing behind them. What a pass changes, it changes by replace().
class Edges {
 public:
  explicit Edges(Graph& graph);
  ~Edges();  // takes the free places out
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  /// The place of the node that makes it; nothing for inputs and constants.
  std::optional<size_t> producer(ValueId id) const { return producers_[id]; }
  /// The places of the nodes that read it, one for each time, in their order.
  const std::multiset<size_t>& users(ValueId id) const { return users_[id]; }
  bool is_output(ValueId id) const { return outputs_[id]; }
  /// The node that alone reads it, once, where it is no output of the model.
  std::optional<size_t> sole_user(ValueId id) const;
  /// Whether it depends on constants only.
  bool is_fixed(ValueId id) const { return fixed_[id]; }

  bool is_free(size_t place) const { return free_[place]; }
  /// The place of the first node at `place` or behind it; the number of places if there is none.
  size_t first_from(size_t place);

  /// Takes the nodes at `places` away, and puts `nodes` where the last of them was. What stands between moves towards
  /// the first of them. Returns the place of the first of `nodes`.
  size_t replace(const std::set<size_t>& places, std::vector<Node> nodes = {});

  /// Places that replace() and first_from() have looked at so far.
  size_t work() const { return work_; }

 private:
  void connect_all();
  void connect(size_t place);
  void disconnect(size_t place);
  void move(size_t from, size_t to);
  void see_fixed(size_t place);
  void make_room_behind(size_t last, size_t count);

  Graph& graph_;
  std::vector<std::optional<size_t>> producers_;
  std::vector<std::multiset<size_t>> users_;
  std::vector<bool> outputs_, fixed_;  // of values
  std::vector<bool> free_;             // of places
  size_t work_ = 0;
};

/// How `operand` repeats along `whole`, of equal rank, when `whole` becomes `to` of as many elements: the extents of
/// the operand then. Nothing where it repeats along a part of what becomes one dimension, or of what one becomes.
std::optional<Extents> repeated_in(const Extents& operand, const Extents& whole, const Extents& to);

}  // namespace kiln::graph
