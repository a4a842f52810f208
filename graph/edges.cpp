#include "edges.h"

#include <algorithm>
#include <numeric>

namespace kiln::graph {

Edges::Edges(const Graph& graph)
    : producers_(graph.count()), first_user_(graph.count() + 2), outputs_(graph.count()), fixed_(graph.count()) {
  for (ValueId id = 0; id < graph.count(); ++id) fixed_[id] = graph.is_constant(id);
  // first_user_[id + 1] is where those of `id` begin, and moves on to where they end as they are written.
  for (const Node& node : graph.nodes()) for_each_input(node, [&](ValueId id) { ++first_user_[id + 2]; });
  std::partial_sum(first_user_.begin(), first_user_.end(), first_user_.begin());
  users_.resize(first_user_.back());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    bool fixed = true;
    for_each_input(graph.nodes()[i], [&](ValueId id) {
      users_[first_user_[id + 1]++] = i;
      fixed = fixed && fixed_[id];
    });
    for_each_output(graph.nodes()[i], [&](ValueId id) {
      producers_[id] = i;
      fixed_[id] = fixed;
    });
  }
  for (const Graph::Port& port : graph.outputs()) outputs_[port.value] = true;
}

std::optional<size_t> Edges::sole_user(ValueId id) const {
  if (outputs_[id] || users(id).size() != 1) return std::nullopt;
  return users(id).front();
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
