// recognise_attention(): which chains of calls become one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_builder.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/graph/optimise.h"
#include "kiln/graph/schedule.h"

namespace kiln::graph::attention_test {
namespace {

using test::calls_of;
using test::constant;
using test::tensor_op;
using testing::ElementsAre;
using testing::Pair;

// One call costs a second: fewer are cheaper.
double by_calls(const Request&) {
  return 1;
}

ValueId product(Graph& graph, ValueId a, ValueId b) {
  Gemm gemm;
  gemm.a = test::spec_of(graph, a);
  gemm.b = test::spec_of(graph, b);
  return graph.call(gemm.request(), {{"a", a}, {"b", b}}).front().value;
}

ValueId softmax(Graph& graph, ValueId x, int64_t axis = -1) {
  SoftmaxForward call;
  call.x = test::spec_of(graph, x);
  call.axis = axis;
  return graph.call(call.request(), {{"x", x}}).front().value;
}

ValueId number(Graph& graph, float value) {
  return constant(graph, {1, 1, 1, 1}, {value});
}

// Queries, keys with their elements in front, and values, of two images and three heads.
struct Inputs {
  Graph graph;
  ValueId q = graph.input("q", DType::f32, {2, 3, 4, 8});
  ValueId kt = graph.permute(graph.input("k", DType::f32, {2, 3, 5, 8}), {0, 1, 3, 2});
  ValueId v = graph.input("v", DType::f32, {2, 3, 5, 6});
};

const Call& only_call(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (const Call* call = std::get_if<Call>(&node)) return *call;
  }
  throw std::logic_error("there is no call");
}

TEST(RecogniseAttention, ChainsOfExportersBecomeOneCall) {
  enum Form { plain, divided, scaled_queries, scaled_keys };
  for (const Form form : {plain, divided, scaled_queries, scaled_keys}) {
    for (const bool masked : {false, true}) {
      Inputs in;
      Graph& graph = in.graph;
      const ValueId q = form == scaled_queries ? tensor_op(graph, "mul", in.q, number(graph, 0.25F)) : in.q;
      const ValueId kt = form == scaled_keys ? tensor_op(graph, "mul", number(graph, 0.25F), in.kt) : in.kt;
      ValueId scores = product(graph, q, kt);
      if (form == divided) scores = tensor_op(graph, "div", scores, number(graph, 4));
      if (masked) scores = tensor_op(graph, "add", scores, graph.input("mask", DType::f32, {2, 1, 1, 5}));
      graph.output("y", product(graph, softmax(graph, scores), in.v));
      recognise_attention(graph, by_calls);
      ASSERT_THAT(calls_of(graph), ElementsAre("attention_forward")) << form << masked;
      const Call& call = only_call(graph);
      EXPECT_THAT(call.numbers, ElementsAre(Pair("scale", form == plain ? 1.0F : 0.25F)));
      EXPECT_EQ(call.inputs.size(), masked ? 4U : 3U);
      const Request request = schedule(graph).steps[0].request;
      EXPECT_EQ(request.at("k").extents, (Extents{2, 3, 5, 8}));
      EXPECT_EQ(request.at("k").strides, (Extents{120, 40, 8, 1})) << "the keys as they are in memory";
      EXPECT_EQ(request.find("bias") != nullptr, masked);
    }
  }
}

TEST(RecogniseAttention, TakesHeadsWithoutImages) {
  for (const Extents& batch : {Extents{}, Extents{6}}) {
    Graph graph;
    const auto of = [&](const char* name, int64_t rows, int64_t columns) {
      Extents extents = batch;
      extents.insert(extents.end(), {rows, columns});
      return graph.input(name, DType::f16, extents);
    };
    const ValueId y = product(graph, softmax(graph, product(graph, of("q", 4, 8), of("kt", 8, 5))), of("v", 5, 6));
    graph.output("y", y);
    recognise_attention(graph, by_calls);
    ASSERT_THAT(calls_of(graph), ElementsAre("attention_forward"));
    Extents expected = batch;
    expected.insert(expected.end(), {4, 6});
    EXPECT_EQ(graph.value(graph.outputs()[0].value).extents, expected);
    EXPECT_EQ(schedule(graph).steps[0].request.at("q").extents, (Extents{batch.empty() ? 1 : 6, 1, 4, 8}));
  }
}

// Changes a chain in one way, and says whether it is attention still.
template <class Change>
bool is_recognised(const Change& change) {
  Inputs in;
  const size_t before = [&] {
    change(in);
    return calls_of(in.graph).size();
  }();
  recognise_attention(in.graph, by_calls);
  return calls_of(in.graph).size() < before;
}

TEST(RecogniseAttention, OtherChainsStay) {
  const auto chain = [](Inputs& in, ValueId scores) {
    in.graph.output("y", product(in.graph, softmax(in.graph, scores), in.v));
  };
  EXPECT_TRUE(is_recognised([&](Inputs& in) { chain(in, product(in.graph, in.q, in.kt)); }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // a scale of the mask too
    const ValueId sum = tensor_op(in.graph, "add", product(in.graph, in.q, in.kt), number(in.graph, 3));
    chain(in, tensor_op(in.graph, "mul", sum, number(in.graph, 2)));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // scores that are read elsewhere
    const ValueId scores = product(in.graph, in.q, in.kt);
    in.graph.output("scores", scores);
    chain(in, scores);
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // weights that are read elsewhere
    const ValueId weights = softmax(in.graph, product(in.graph, in.q, in.kt));
    in.graph.output("weights", weights);
    in.graph.output("y", product(in.graph, weights, in.v));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // along the queries
    in.graph.output("y", product(in.graph, softmax(in.graph, product(in.graph, in.q, in.kt), 2), in.v));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // divided by a tensor
    const ValueId scores = product(in.graph, in.q, in.kt);
    chain(in, tensor_op(in.graph, "div", scores, in.graph.input("d", DType::f32, {1, 1, 1, 5})));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // a scale that no f32 holds
    chain(in, tensor_op(in.graph, "div", product(in.graph, in.q, in.kt), number(in.graph, 0)));
  }));
}

TEST(RecogniseAttention, OnlyWhereItCostsLess) {
  Inputs in;
  in.graph.output("y", product(in.graph, softmax(in.graph, product(in.graph, in.q, in.kt)), in.v));
  recognise_attention(in.graph, Cost([](const Request& request) { return request.operation == "gemm" ? 1 : 5.0; }));
  EXPECT_THAT(calls_of(in.graph), ElementsAre("attention_forward"));  // 5 of 1 + 5 + 1
  Inputs dear;
  dear.graph.output("y", product(dear.graph, softmax(dear.graph, product(dear.graph, dear.q, dear.kt)), dear.v));
  const auto of_one = [](const Request& request) { return request.operation == "attention_forward" ? 4.0 : 1.0; };
  recognise_attention(dear.graph, Cost(of_one));
  EXPECT_EQ(calls_of(dear.graph).size(), 3U);
}

}  // namespace
}  // namespace kiln::graph::attention_test
