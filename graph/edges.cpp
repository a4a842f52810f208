#include "edges.h"

#include <algorithm>
#include <utility>

namespace kiln::graph {

Edges::Edges(Graph& graph)
    : graph_(graph), outputs_(graph.count()), fixed_(graph.count()), free_(graph.nodes().size()) {
  for (const Graph::Port& port : graph_.outputs()) outputs_[port.value] = true;
  for (ValueId id = 0; id < graph.count(); ++id) fixed_[id] = graph.is_constant(id);
  for (size_t place = 0; place < graph.nodes().size(); ++place) see_fixed(place);
  connect_all();
}

Edges::~Edges() {
  std::vector<Node>& nodes = graph_.nodes();
  size_t to = 0;
  for (size_t place = 0; place < nodes.size(); ++place) {
    if (free_[place]) continue;
    if (to != place) nodes[to] = std::move(nodes[place]);
    ++to;
  }
  graph_.truncate(to);
}

void Edges::connect_all() {
  producers_.assign(graph_.count(), std::nullopt);
  users_.assign(graph_.count(), {});
  for (size_t place = 0; place < graph_.nodes().size(); ++place) {
    if (!free_[place]) connect(place);
  }
  work_ += graph_.nodes().size();
}

void Edges::connect(size_t place) {
  for_each_input(graph_.nodes()[place], [&](ValueId id) { users_[id].insert(place); });
  for_each_output(graph_.nodes()[place], [&](ValueId id) { producers_[id] = place; });
}

void Edges::see_fixed(size_t place) {
  bool fixed = true;
  for_each_input(graph_.nodes()[place], [&](ValueId id) { fixed = fixed && fixed_[id]; });
  for_each_output(graph_.nodes()[place], [&](ValueId id) { fixed_[id] = fixed; });
}

void Edges::disconnect(size_t place) {
  for_each_input(graph_.nodes()[place], [&](ValueId id) { users_[id].erase(users_[id].find(place)); });
  for_each_output(graph_.nodes()[place], [&](ValueId id) { producers_[id].reset(); });
}

// To a free place.
void Edges::move(size_t from, size_t to) {
  disconnect(from);
  graph_.nodes()[to] = std::move(graph_.nodes()[from]);
  free_[from] = true;
  free_[to] = false;
  connect(to);
}

// Moves what stands behind `last` so that `count` places there are free.
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

size_t Edges::first_from(size_t place) {
  while (place < free_.size() && free_[place]) {
    ++place;
    ++work_;
  }
  return place;
}

size_t Edges::replace(const std::set<size_t>& places, std::vector<Node> nodes) {
  const size_t first = *places.begin();
  const size_t end = *places.rbegin();
  for (const size_t place : places) {
    disconnect(place);
    graph_.nodes()[place] = Concat{};
    free_[place] = true;
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
  const size_t place = to;
  for (Node& node : nodes) {
    graph_.nodes()[to] = std::move(node);
    free_[to] = false;
    see_fixed(to);
    connect(to++);
  }
  return place;
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
