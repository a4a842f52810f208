#include "edges.h"

#include <algorithm>
#include <utility>

namespace kiln::graph {

Edges::Edges(Graph& graph)
    : graph_(graph), outputs_(graph.count()), fixed_(graph.count()), free_(graph.nodes().size()) {
  for (const Graph::Port& port : graph_.outputs()) outputs_[port.value] = true;
  for (ValueId id = 0; id < graph.count(); ++id) fixed_[id] = graph.is_constant(id);
  for (size_t index = 0; index < graph.nodes().size(); ++index) see_fixed(index);
  connect_all();
}

Edges::~Edges() {
  std::vector<Node>& nodes = graph_.nodes();
  size_t to = 0;
  for (size_t index = 0; index < nodes.size(); ++index) {
    if (free_[index]) continue;
    if (to != index) nodes[to] = std::move(nodes[index]);
    ++to;
  }
  graph_.truncate(to);
}

void Edges::connect_all() {
  producers_.assign(graph_.count(), std::nullopt);
  users_.assign(graph_.count(), {});
  for (size_t index = 0; index < graph_.nodes().size(); ++index) {
    if (!free_[index]) connect(index);
  }
  work_ += graph_.nodes().size();
}

void Edges::connect(size_t index) {
  for_each_input(graph_.nodes()[index], [&](ValueId id) { users_[id].insert(index); });
  for_each_output(graph_.nodes()[index], [&](ValueId id) { producers_[id] = index; });
}

void Edges::see_fixed(size_t index) {
  bool fixed = true;
  for_each_input(graph_.nodes()[index], [&](ValueId id) { fixed = fixed && fixed_[id]; });
  for_each_output(graph_.nodes()[index], [&](ValueId id) { fixed_[id] = fixed; });
}

void Edges::disconnect(size_t index) {
  for_each_input(graph_.nodes()[index], [&](ValueId id) { users_[id].erase(users_[id].find(index)); });
  for_each_output(graph_.nodes()[index], [&](ValueId id) { producers_[id].reset(); });
}

// Moves a node to a free slot.
void Edges::move(size_t from, size_t to) {
  disconnect(from);
  graph_.nodes()[to] = std::move(graph_.nodes()[from]);
  free_[from] = true;
  free_[to] = false;
  connect(to);
}

// Moves the nodes behind `last` so that `count` slots there are free.
void Edges::make_room_behind(size_t last, size_t count) {
  constexpr size_t most_moved = 64;  // before all that is behind moves, to give room for as many others
  std::vector<Node>& nodes = graph_.nodes();
  size_t end = last, found = 0;
  while (found < count && end + 1 < nodes.size() && end - last < most_moved + count) found += free_[++end] ? 1 : 0;
  if (found < count) {
    const size_t room = most_moved + count;
    const auto behind = static_cast<std::ptrdiff_t>(last + 1);
    nodes.insert(nodes.begin() + behind, room, Concat{});
    free_.insert(free_.begin() + behind, room, true);
    connect_all();
    return;
  }
  size_t to = end;
  for (size_t from = end; from > last; --from) {
    if (free_[from]) continue;
    if (from != to) move(from, to);
    --to;
  }
  work_ += end - last;
}

size_t Edges::first_from(size_t index) {
  while (index < free_.size() && free_[index]) {
    ++index;
    ++work_;
  }
  return index;
}

size_t Edges::replace(const std::set<size_t>& indices, std::vector<Node> nodes) {
  const size_t first = *indices.begin();
  const size_t end = *indices.rbegin();
  for (const size_t index : indices) {
    disconnect(index);
    graph_.nodes()[index] = Concat{};
    free_[index] = true;
  }
  size_t to = first;
  for (size_t from = first; from <= end; ++from) {
    if (free_[from]) continue;
    if (from != to) move(from, to);
    ++to;
  }
  work_ += end + 1 - first + nodes.size();
  const size_t room = end + 1 - to;
  if (nodes.size() > room) make_room_behind(end, nodes.size() - room);
  producers_.resize(graph_.count());
  users_.resize(graph_.count());
  outputs_.resize(graph_.count());
  for (ValueId id = fixed_.size(); id < graph_.count(); ++id) fixed_.push_back(graph_.is_constant(id));
  const size_t index = to;
  for (Node& node : nodes) {
    graph_.nodes()[to] = std::move(node);
    free_[to] = false;
    see_fixed(to);
    connect(to++);
  }
  return index;
}

std::optional<size_t> Edges::sole_user(ValueId id) const {
  if (outputs_[id] || users_[id].size() != 1) return std::nullopt;
  return *users_[id].begin();
}

std::optional<Extents> repeated_in(const Extents& operand, const Extents& whole, const Extents& to) {
  if (count_elements(whole) != count_elements(to) || count_elements(whole) == 0) return std::nullopt;
  Extents result(to.size(), 1);
  size_t s = 0, t = 0;
  while (s < whole.size() || t < to.size()) {
    // The next dimensions of both that have equally many elements.
    const size_t first_s = s, first_t = t;
    int64_t have = 1, want = 1;
    if (s < whole.size()) have = whole[s++];
    if (t < to.size()) want = to[t++];
    while (have != want) {
      if (have < want) {
        have *= whole[s++];
      } else {
        want *= to[t++];
      }
    }
    bool full = true, repeats = true;
    for (size_t d = first_s; d < s; ++d) {
      full = full && operand[d] == whole[d];
      repeats = repeats && operand[d] == 1;
    }
    if (have == 1) continue;
    if (full) {
      std::copy(to.begin() + static_cast<std::ptrdiff_t>(first_t), to.begin() + static_cast<std::ptrdiff_t>(t),
                result.begin() + static_cast<std::ptrdiff_t>(first_t));
    } else if (!repeats) {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace kiln::graph
