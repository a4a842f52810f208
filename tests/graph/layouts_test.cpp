#include "kiln/graph/layouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "graph_builder.h"
#include "kiln/generator/operations/conv_forward.h"

namespace kiln::graph::layouts_test {
namespace {

using test::constant;
using test::conv;

ValueId relu(Graph& graph, ValueId x) {
  return test::activation(graph, "relu", x);
}

bool is_channels_last(const TensorSpec& spec) {
  return spec.strides[1] == 1 && spec.extents[1] > 1;
}

/// Convolutions cost 1, and half of that where they read and write channels last; all else costs `other`.
Cost halved_for_nhwc(double other) {
  return [other](const Request& request) {
    if (request.operation != "conv_forward") return other;
    return is_channels_last(request.at("x")) && is_channels_last(request.at("y")) ? 0.5 : 1;
  };
}

std::vector<std::string> lines_of(const Graph& graph, const std::vector<bool>& channels_last) {
  std::vector<std::string> lines;
  ScheduleOptions options;
  options.channels_last = channels_last;
  for (const Step& step : schedule(graph, options).steps) lines.push_back(step.request.key());
  return lines;
}

/// x -> conv -> relu -> conv -> relu -> conv -> y.
struct Chain {
  Graph graph;
  ValueId a, b, second_filter, c, middle, third_filter;

  Chain() {
    const ValueId x = graph.input("x", DType::f32, {1, 3, 9, 9});
    a = conv(graph, x, constant(graph, {4, 3, 3, 3}));
    b = relu(graph, a);
    second_filter = constant(graph, {4, 4, 3, 3});
    c = conv(graph, b, second_filter);
    middle = relu(graph, c);
    third_filter = constant(graph, {2, 4, 3, 3});
    graph.output("y", conv(graph, middle, third_filter));
  }
};

TEST(Layouts, WhatIsCheaperChannelsLastLiesSo) {
  const Chain chain;
  const std::vector<bool> chosen = choose_layouts(chain.graph, {}, halved_for_nhwc(0.1));
  ASSERT_EQ(chosen.size(), chain.graph.count());
  EXPECT_TRUE(chosen[chain.a] && chosen[chain.b] && chosen[chain.middle]);
  // Input and output are the caller's, in logical order; convolutions pass from one layout to the other.
  const std::vector<std::string> lines = lines_of(chain.graph, chosen);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].find("conv_forward x=f32:1x3x9x9:nchw w=f32:4x3x3x3:"), 0U) << lines[0];
  EXPECT_NE(lines[0].find("y=f32:1x4x7x7:nhwc"), std::string::npos) << lines[0];
  EXPECT_NE(lines[2].find("x=f32:1x4x7x7:nhwc w=f32:4x4x3x3:nhwc y=f32:1x4x5x5:nhwc"), std::string::npos) << lines[2];
  EXPECT_NE(lines[4].find("y=f32:1x2x3x3:nchw"), std::string::npos) << lines[4];
}

// A value and what is made of it element by element lie alike, whatever the rank of the network.
TEST(Layouts, ValuesOfOneDimensionalNetworksLieAsTheirNeighbours) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 4, 9});
  const ValueId a = conv(graph, x, constant(graph, {4, 4, 3})), b = relu(graph, a);
  graph.output("y", conv(graph, b, constant(graph, {4, 4, 3})));
  int tried = 0;
  // The convolution in front is dear where it writes channels last, the activation cheap where it reads them so.
  const Cost cost = [&](const Request& request) {
    ++tried;
    if (request.operation == "conv_forward") return is_channels_last(request.at("y")) ? 1.0 : 0.5;
    return is_channels_last(request.at("x")) || is_channels_last(request.at("y")) ? 0.1 : 1.0;
  };
  const std::vector<bool> chosen = choose_layouts(graph, {}, cost);
  EXPECT_EQ(chosen[a], chosen[b]);
}

TEST(Layouts, LogicalOrderStaysWhereNothingIsWon) {
  const Chain chain;
  const std::vector<bool> chosen = choose_layouts(chain.graph, {}, [](const Request&) { return 1.0; });
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), true), 0);
  EXPECT_EQ(lines_of(chain.graph, chosen), lines_of(chain.graph, {}));
}

TEST(Layouts, ARegionKeepsItsOrderWhereOnlyTheOthersWin) {
  const Chain chain;
  // The activation behind the first convolution is dear channels last, everything else is cheaper so.
  const Cost cost = [](const Request& request) {
    if (request.operation == "conv_forward") return is_channels_last(request.at("y")) ? 0.5 : 1;
    return request.at("x").extents[2] == 7 && is_channels_last(request.at("x")) ? 10 : 0.1;
  };
  const std::vector<bool> chosen = choose_layouts(chain.graph, {}, cost);
  EXPECT_FALSE(chosen[chain.a]);
  EXPECT_FALSE(chosen[chain.b]);
  EXPECT_TRUE(chosen[chain.middle]);
}

TEST(Layouts, CopiesCountToo) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 4, 6, 6});
  const ValueId a = conv(graph, relu(graph, x), constant(graph, {4, 4, 3, 3}));
  const ValueId y = graph.concat({a, relu(graph, a)}, 1);
  // Rows of channels and positions: they are no view of channels last.
  graph.output("y", relu(graph, graph.reshape(y, {2, 128})));
  const std::vector<bool> cheap = choose_layouts(graph, {}, halved_for_nhwc(0.1));
  EXPECT_TRUE(cheap[y]);
  const std::vector<bool> dear = choose_layouts(graph, {}, halved_for_nhwc(2));
  EXPECT_FALSE(dear[y]);
}

TEST(Layouts, PartsOfAConcatAndResidualsLieAsTheWhole) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 4, 8, 8});
  const ValueId a = conv(graph, x, constant(graph, {4, 4, 1, 1})), b = conv(graph, x, constant(graph, {4, 4, 1, 1}));
  const ValueId sum = test::tensor_op(graph, "add", a, b);
  const ValueId both = graph.concat({sum, relu(graph, x)}, 1);
  graph.output("y", conv(graph, both, constant(graph, {2, 8, 1, 1})));
  const std::vector<bool> all = all_channels_last(graph);
  EXPECT_TRUE(all[a] && all[b] && all[sum] && all[both]);
  for (const std::string& line : lines_of(graph, all)) EXPECT_EQ(line.find("tensor_transform"), std::string::npos);
}

TEST(Layouts, PartsOfAValueLieAsItDoes) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 4, 8, 8}), constant(graph, {6, 4, 1, 1}));
  const ValueId part = graph.slice(y, {0, 2, 0, 0}, {1, 3, 8, 8}, {1, 1, 1, 1});
  graph.output("y", relu(graph, part));
  EXPECT_TRUE(all_channels_last(graph)[part]);
}

TEST(Layouts, WhatNoConvolutionTouchesIsLeftAlone) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 4, 8, 8});
  graph.output("y", relu(graph, relu(graph, x)));
  EXPECT_TRUE(choose_layouts(graph, {}, [](const Request&) { return 1.0; }).empty());
  const std::vector<bool> all = all_channels_last(graph);
  EXPECT_EQ(std::count(all.begin(), all.end(), true), 0);
}

TEST(Layouts, FiltersAreConstantsInTheOrderOfWhatTheyReadWith) {
  const Chain chain;
  ScheduleOptions options;
  options.channels_last = all_channels_last(chain.graph);
  const Schedule made = schedule(chain.graph, options);
  EXPECT_TRUE(made.once.empty());
  const Buffer& filter = made.buffers[made.steps[2].arguments[1].buffer];
  EXPECT_EQ(filter.home, Buffer::Home::constant);
  EXPECT_EQ(filter.order, (std::vector<size_t>{0, 2, 3, 1}));
}

/// Regions of a chain: the first convolution's result, and the second's with its filter, and so on.
TEST(Layouts, NoRegionIsBetterOnItsOtherSide) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Chain chain;
    std::mt19937 random(seed);
    std::map<std::string, double> costs;
    const Cost cost = [&](const Request& request) {
      return costs.try_emplace(request.key(), std::uniform_real_distribution<double>(0, 1)(random)).first->second;
    };
    const auto seconds = [&](const std::vector<bool>& channels_last) {
      double sum = 0;
      ScheduleOptions options;
      options.channels_last = channels_last;
      for (const Step& step : schedule(chain.graph, options).steps) {
        if (costs.count(step.request.key()) == 0) (void)cost(step.request);
        sum += costs.at(step.request.key());
      }
      return sum;
    };
    const std::vector<bool> chosen = choose_layouts(chain.graph, {}, cost);
    EXPECT_LE(seconds(chosen), seconds({}));
    EXPECT_LE(seconds(chosen), seconds(all_channels_last(chain.graph)));
    for (const std::vector<ValueId>& region :
         {std::vector{chain.a, chain.b, chain.second_filter}, std::vector{chain.c, chain.middle, chain.third_filter}}) {
      std::vector<bool> other = chosen;
      for (const ValueId id : region) other[id] = !other[id];
      EXPECT_LE(seconds(chosen), seconds(other));
    }
  }
}

/// Convolutions behind one another, of which every other one wins channels last, with reshapes between.
TEST(Layouts, ALargeModelTakesTimeByItsNodes) {
  const auto costs_of = [](int convolutions) {
    Graph graph;
    ValueId last = graph.input("x", DType::f32, {1, 4, 4, 4});
    for (int i = 0; i < convolutions; ++i) {
      const int64_t rows = i % 2 == 0 ? 2 : 4;
      last = graph.reshape(conv(graph, last, constant(graph, {4, 4, 1, 1})), {1, 4, rows, 16 / rows});
    }
    graph.output("y", last);
    int costs = 0;
    const Cost cost = [&](const Request& request) {
      ++costs;
      if (request.operation != "conv_forward") return 0.25;
      return request.at("x").extents[2] == 2 && is_channels_last(request.at("y")) ? 0.5 : 1.0;
    };
    const std::vector<bool> chosen = choose_layouts(graph, {}, cost);
    EXPECT_GT(std::count(chosen.begin(), chosen.end(), true), convolutions / 4);
    return costs;
  };
  const int few = costs_of(100), many = costs_of(800);
  EXPECT_LT(many, 9 * few) << few << " requests for 100 convolutions";
}

/// A graph of random convolutions, activations and moves, and the regions that convolutions read or write.
struct RandomGraph {
  Graph graph;
  std::map<ValueId, int> regions;  // of values, by number
  std::set<int> of_convolutions;
  std::mt19937 random;

  explicit RandomGraph(unsigned seed) : random(seed) {
    std::vector<ValueId> values{in_new_region(graph.input("x", DType::f32, {1, 4, 4, 4}))};
    for (int i = 0; i < 24; ++i) {
      values.push_back(grown_from(values[below(values.size())]));
      if (below(8) == 0) graph.output("o" + std::to_string(i), values.back());
    }
    graph.output("y", values.back());
  }

 private:
  size_t below(size_t count) { return static_cast<size_t>(random() % count); }

  ValueId in_region_of(ValueId known, ValueId id) {
    regions[id] = regions.at(known);
    return id;
  }
  ValueId in_new_region(ValueId id) {
    const int number = static_cast<int>(regions.size());
    regions[id] = number;
    return id;
  }

  ValueId grown_from(ValueId x) {
    const Extents extents = graph.value(x).extents;
    switch (below(6)) {
      case 0:
        return in_region_of(x, relu(graph, x));
      case 1:
        return in_new_region(graph.permute(x, {0, 1, 3, 2}));
      case 2:
        return in_new_region(graph.reshape(in_new_region(graph.reshape(x, {1, 4, 16})), {1, 4, 2, 8}));
      case 3: {
        const ValueId both = in_region_of(x, graph.concat({x, in_region_of(x, relu(graph, x))}, 1));
        return in_region_of(x, graph.slice(both, {0, 2, 0, 0}, extents, {1, 1, 1, 1}));
      }
      default: {
        const ValueId y = in_new_region(conv(graph, x, in_region_of(x, constant(graph, {4, 4, 1, 1}))));
        of_convolutions.insert({regions.at(x), regions.at(y)});
        return y;
      }
    }
  }
};

/// The search schedules the surroundings of a region, and must find what schedules of the whole model would show.
TEST(Layouts, NoRegionOfRandomGraphsIsBetterOnItsOtherSide) {
  int regions = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const RandomGraph made(seed);
    const Graph& graph = made.graph;
    std::mt19937 random(seed);
    std::map<std::string, double> costs;
    const Cost cost = [&](const Request& request) {
      const double fresh = std::uniform_real_distribution<double>(0, 1)(random);
      return costs.try_emplace(request.key(), fresh).first->second;
    };
    const auto seconds = [&](const std::vector<bool>& channels_last) {
      double sum = 0;
      ScheduleOptions options;
      options.channels_last = channels_last;
      for (const Step& step : schedule(graph, options).steps) sum += cost(step.request);
      return sum;
    };
    const std::vector<bool> chosen = choose_layouts(graph, {}, cost);
    if (chosen.empty()) continue;  // no convolution
    const double least = seconds(chosen) - 1e-9;
    EXPECT_LE(least, seconds({}));
    EXPECT_LE(least, seconds(all_channels_last(graph)));
    for (const int region : made.of_convolutions) {
      std::vector<bool> other = chosen;
      for (const auto& [id, number] : made.regions) {
        if (number == region) other[id] = !other[id];
      }
      EXPECT_LE(least, seconds(other)) << "seed " << seed << ", region " << region;
      ++regions;
    }
  }
  EXPECT_GT(regions, 300);
}

TEST(Layouts, ASearchThatIsCutShortKeepsTheBestSoFar) {
  Graph graph;
  std::vector<ValueId> results;
  for (int i = 0; i < 20; ++i) {
    // Channels last is a gain for the two outer convolutions at either end, and a loss for those between.
    const int64_t channels = i < 2 || i >= 18 ? 2 : 4;
    const std::string n = std::to_string(i);
    const ValueId x = graph.input("x" + n, DType::f32, {1, channels, 2, 2});
    results.push_back(conv(graph, x, constant(graph, {2, channels, 1, 1})));
    graph.output("y" + n, relu(graph, results.back()));
  }
  int costs = 0;
  const Cost cost = [&](const Request& request) {
    if (request.operation != "conv_forward") return 0.0;
    ++costs;
    if (!is_channels_last(request.at("y"))) return 1.0;
    return request.at("x").extents[1] == 2 ? 0.5 : 2.0;
  };
  const std::vector<bool> whole = choose_layouts(graph, {}, cost);
  EXPECT_TRUE(whole[results.front()]);
  EXPECT_FALSE(whole[results[10]]);
  EXPECT_TRUE(whole[results.back()]);

  costs = 0;
  const std::vector<bool> cut = choose_layouts(graph, {}, cost, 220);
  EXPECT_LE(costs, 2 * 20 + 2 * 16) << "two whole schedules have 160 nodes and steps, and the two of a region eight";
  EXPECT_TRUE(cut[results.front()]);
  EXPECT_FALSE(cut[results.back()]);
}

}  // namespace
}  // namespace kiln::graph::layouts_test
