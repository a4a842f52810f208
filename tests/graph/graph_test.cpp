#include "kiln/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "edges.h"
#include "graph_builder.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"

namespace kiln::graph::graph_test {
namespace {

using testing::HasSubstr;

template <typename Build>
void expect_refused(const Build& build, const std::string& text) {
  try {
    (void)build();
    ADD_FAILURE() << "built, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(Graph, RefusesViewsThatDoNotFit) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 6});
  expect_refused([&] { return graph.reshape(x, {5}); }, "2x6 cannot become 5");
  expect_refused([&] { return graph.reshape(x, {-2, -6}); }, "an extent is -2");
  expect_refused([&] { return graph.permute(x, {0, 0}); }, "0,0 is no order of 2 dimensions");
  expect_refused([&] { return graph.slice(x, {0, 0}, {2, 7}, {1, 1}); }, "is not inside 2x6");
  expect_refused([&] { return graph.slice(x, {0, 3}, {2, 3}, {1, 2}); }, "3 elements from 3 on, 2 apart");
  expect_refused([&] { return graph.slice(x, {0, -1}, {2, 1}, {1, 1}); }, "from -1 on");
  expect_refused([&] { return graph.slice(x, {0}, {2}, {1}); }, "for each dimension");
  expect_refused([&] { return graph.repeat(x, {4, 6}); }, "2x6 does not repeat to 4x6");
  expect_refused([&] { return graph.concat({x, graph.input("z", DType::f32, {3, 5})}, 0); }, "does not fit f32 2x6");
  expect_refused([&] { return graph.concat({x, graph.input("h", DType::f16, {2, 6})}, 0); }, "f16 2x6 does not fit");
  expect_refused([&] { return graph.concat({}, 0); }, "nothing to put together");
  expect_refused([&] { return graph.input("big", DType::f32, {int64_t{1} << 40, int64_t{1} << 40}); }, "2^40");
  expect_refused([&] { return graph.input("deep", DType::f32, Extents(65, 1)); },
                 "has 65 dimensions, expected up to 64");
  expect_refused([&] { return graph.constant("c", DType::f32, {2}, std::make_shared<std::vector<std::byte>>(7)); },
                 "has 7 bytes, expected 8");
}

TEST(Graph, ExtentsAreLookedAtBehindAZeroToo) {
  Graph graph;
  const int64_t large = int64_t{1} << 39;
  expect_refused([&] { return graph.input("x", DType::f32, {0, -7}); }, "an extent is -7, expected 0 or more");
  expect_refused(
      [&] {
        return graph.input("x", DType::f32, {0, large, large});
      },
      "more than 2^40 elements, the most in a model");
  EXPECT_EQ(count_elements({0, large}), 0);
  EXPECT_EQ(count_elements({2, large}), most_elements);
}

TEST(Graph, PartsWhoseEndWouldNotFit64BitsAreRefused) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {6});
  for (const std::array<int64_t, 3>& part : std::vector<std::array<int64_t, 3>>{
           {1, 3, most}, {most, 2, 1}, {least, 2, 1}, {0, most, most}, {0, least, 1}, {1, 2, least}, {7, 0, 1}}) {
    expect_refused([&] { return graph.slice(x, {part[0]}, {part[1]}, {part[2]}); }, "is not inside 6");
  }
  (void)graph.slice(x, {5}, {1}, {most});
  EXPECT_EQ(std::get<Slice>(std::get<View>(graph.nodes().back()).kind).step, Extents{1});
}

TEST(Graph, PartsWhoseSumWouldNotFit64BitsAreRefused) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {int64_t{1} << 40, 0});
  expect_refused([&] { return graph.concat({x, x}, 0); }, "more than 2^40 elements along dimension 0");
}

TEST(Graph, MoreNodesThanCanBePlannedAreRefused) {
  Graph graph;
  ValueId x = graph.input("x", DType::f32, {2, 3});
  for (size_t i = 0; i < most_nodes; ++i) x = graph.permute(x, {1, 0});
  try {
    (void)graph.permute(x, {1, 0});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), testing::HasSubstr("more than 65536 calls and views"));
  }
}

TEST(Graph, ViewsThatChangeNothingAreTheValueItself) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 6});
  EXPECT_EQ(graph.reshape(x, {2, 6}), x);
  EXPECT_EQ(graph.permute(x, {0, 1}), x);
  EXPECT_EQ(graph.slice(x, {0, 0}, {2, 6}, {1, 1}), x);
  EXPECT_EQ(graph.repeat(x, {2, 6}), x);
  EXPECT_EQ(graph.concat({x}, 1), x);
  EXPECT_TRUE(graph.nodes().empty());
  EXPECT_EQ(graph.value(graph.slice(x, {1, 1}, {1, 3}, {1, 2})).extents, (Extents{1, 3}));
}

TEST(Graph, ClassesOfScaleFollowFromNumbers) {
  for (const auto& [alpha, scale] : {std::pair(0.0F, Scale::zero), {1.0F, Scale::one}, {0.5F, Scale::any}}) {
    Graph graph;
    (void)test::activation(graph, "relu", graph.input("x", DType::f32, {4}), {{"alpha", alpha}});
    EXPECT_EQ(std::get<Call>(graph.nodes()[0]).request.blend.alpha, scale);
  }
}

TEST(Graph, NumbersOfUserCodeAreNotTheCallsOwn) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {4});
  ActivationForward forward;
  forward.x = forward.y = test::spec_of(graph, x);
  forward.mode = ActivationMode::identity;
  const Request request = with_user_code(forward.request(), Expression("acc * alpha", {}, {"alpha"}), {});
  (void)graph.call(request, {{"x", x}}, {{"alpha", 0.5F}});
  EXPECT_EQ(std::get<Call>(graph.nodes()[0]).request.blend, Blend{});
}

TEST(RepeatedIn, FollowsReshapes) {
  EXPECT_EQ(repeated_in({1, 6, 1}, {2, 6, 16}, {2, 6, 4, 4}), (Extents{1, 6, 1, 1}));
  EXPECT_EQ(repeated_in({1, 1, 4}, {2, 3, 4}, {6, 4}), (Extents{1, 4}));
  EXPECT_EQ(repeated_in({2, 3, 1}, {2, 3, 4}, {6, 4}), (Extents{6, 1}));
  EXPECT_EQ(repeated_in({4, 1}, {4, 1}, {4}), Extents{4});
  EXPECT_EQ(repeated_in({4}, {4}, {1, 4, 1, 1}), (Extents{1, 4, 1, 1}));
  EXPECT_EQ(repeated_in({1, 3}, {2, 3}, {6}), std::nullopt);  // along a part of what becomes one
  EXPECT_EQ(repeated_in({2, 1}, {2, 6}, {4, 3}), std::nullopt);
  EXPECT_EQ(repeated_in({2, 2}, {2, 2}, {5}), std::nullopt);
}

}  // namespace
}  // namespace kiln::graph::graph_test
