// Edges while a graph is rewritten: nodes keep the order that a plain list of them would have.
#include "edges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "effort.h"

namespace kiln::graph::edges_test {
namespace {

/// Value that a node makes, its only one.
ValueId made_by(const Node& node) {
  ValueId made = 0;
  for_each_output(node, [&](ValueId id) { made = id; });
  return made;
}

std::vector<ValueId> order_of(const Graph& graph, const Edges& edges) {
  std::vector<ValueId> order;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (!edges.is_free(index)) order.push_back(made_by(graph.nodes()[index]));
  }
  return order;
}

void expect_true_edges(const Graph& graph, const Edges& edges) {
  std::map<ValueId, std::multiset<size_t>> users;
  std::map<ValueId, size_t> producers;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    if (edges.is_free(index)) continue;
    for_each_input(graph.nodes()[index], [&](ValueId id) { users[id].insert(index); });
    producers[made_by(graph.nodes()[index])] = index;
  }
  for (ValueId id = 0; id < graph.count(); ++id) {
    EXPECT_EQ(edges.users(id), users[id]) << id;
    EXPECT_EQ(edges.producer(id).has_value(), producers.contains(id)) << id;
    if (edges.producer(id)) {
      EXPECT_EQ(*edges.producer(id), producers[id]) << id;
    }
  }
}

TEST(Edges, NodesKeepTheOrderOfAPlainListWhileTheyAreReplaced) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t most) { return random() % most; };
    Graph graph;
    const ValueId x = graph.input("x", DType::f32, {2, 3});
    const size_t count = 1 + below(300);
    std::vector<ValueId> made{x}, plain;
    for (size_t i = 0; i < count; ++i) {
      plain.push_back(graph.permute(made[made.size() - 1 - below(std::min<size_t>(made.size(), 5))], {1, 0}));
      made.push_back(plain.back());
    }
    {
      Edges edges(graph);
      for (int change = 0; change < 200 && !plain.empty(); ++change) {
        std::set<size_t> indices;
        std::vector<ValueId> taken;
        const size_t first = below(plain.size()), reach = 1 + below(10);
        for (size_t i = first; i < std::min(plain.size(), first + reach); ++i) {
          if (!taken.empty() && below(2) == 0) continue;
          taken.push_back(plain[i]);
          indices.insert(edges.producer(plain[i]).value());
        }
        std::vector<Node> nodes;
        std::vector<ValueId> more;
        const size_t room = change % 50 == 0 ? 100 : 6;
        for (size_t i = below(room); i-- > 0;) {
          more.push_back(graph.add_value({{}, DType::f32, {3, 2}}));
          nodes.emplace_back(View{Reshape{}, x, more.back()});
        }
        const size_t at = edges.replace(indices, std::move(nodes));
        const auto last = std::find(plain.begin(), plain.end(), taken.back());
        plain.insert(last + 1, more.begin(), more.end());
        plain.erase(
            std::remove_if(plain.begin(), plain.end(),
                           [&](ValueId id) { return std::find(taken.begin(), taken.end(), id) != taken.end(); }),
            plain.end());
        if (!more.empty()) {
          EXPECT_EQ(edges.producer(more.front()), at);
        }
        ASSERT_EQ(order_of(graph, edges), plain) << "seed " << seed << ", change " << change;
        expect_true_edges(graph, edges);
      }
    }
    std::vector<ValueId> left;
    for (const Node& node : graph.nodes()) left.push_back(made_by(node));
    EXPECT_EQ(left, plain) << "free slots were left in the graph, or nodes were lost";
  }
}

TEST(Edges, AReplacementTakesTheWorkOfWhatStandsBetween) {
  constexpr size_t count = 10'000;
  Graph graph;
  std::vector<ValueId> values{graph.input("x", DType::f32, {2, 3})};
  for (size_t i = 0; i < count; ++i)
    values.push_back(graph.reshape(values.back(), i % 2 == 0 ? Extents{3, 2} : Extents{2, 3}));
  Edges edges(graph);
  const size_t before = edges.work();
  for (size_t index = 0; index + 1 < count; index += 2) {
    edges.replace({index, index + 1}, {View{Reshape{}, values[index], values[index + 2]}});
  }
  EXPECT_LE(edges.work() - before, 4 * count);
  EXPECT_TRUE(Effort::may_go_on(edges));
}

}  // namespace
}  // namespace kiln::graph::edges_test
