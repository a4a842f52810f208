// recognise_attention(): which chains of calls become one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "attention_match.h"
#include "graph_builder.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/operations/tensor_ops.h"
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

ValueId softmax(Graph& graph, ValueId x, int64_t axis = -1, SoftmaxMode mode = SoftmaxMode::accurate) {
  SoftmaxForward call;
  call.x = test::spec_of(graph, x);
  call.axis = axis;
  call.mode = mode;
  return graph.call(call.request(), {{"x", x}}).front().value;
}

ValueId number(Graph& graph, float value) {
  return constant(graph, {1, 1, 1, 1}, {value});
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float lowest = std::numeric_limits<float>::lowest();

ValueId select(Graph& graph, ValueId flags, ValueId b, ValueId c) {
  TensorOp op;
  op.mode = TensorOpMode::select;
  op.a = test::spec_of(graph, flags);
  op.b = test::spec_of(graph, b);
  op.c = test::spec_of(graph, c);
  op.y = count_elements(op.b->extents) > 1 ? *op.b : *op.c;
  return graph.call(op.request(), {{"a", flags}, {"b", b}, {"c", c}}).front().value;
}

ValueId is_nan(Graph& graph, ValueId x) {
  TensorOp op;
  op.mode = TensorOpMode::ne;
  op.a = op.y = test::spec_of(graph, x);
  op.b = op.a;
  op.y.dtype = DType::u8;
  return graph.call(op.request(), {{"a", x}, {"b", x}}).front().value;
}

// Zeros in the place of NaN.
ValueId without_nan(Graph& graph, ValueId x) {
  return select(graph, is_nan(graph, x), number(graph, 0), x);
}

// Where a query at `first` and behind it sees keys up to its place: `seen`, elsewhere `hidden`.
std::vector<float> triangle(int64_t queries, int64_t keys, int64_t first, float seen, float hidden) {
  std::vector<float> elements;
  for (int64_t query = 0; query < queries; ++query) {
    for (int64_t key = 0; key < keys; ++key) elements.push_back(key <= query + first ? seen : hidden);
  }
  return elements;
}

ValueId flags(Graph& graph, Extents extents, const std::vector<float>& elements) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  for (const float each : elements) bytes->push_back(std::byte{each != 0});
  return graph.constant("flags", DType::u8, std::move(extents), std::move(bytes));
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

TEST(RecogniseAttention, ScaledQueriesThatAreReadElsewhereStay) {
  Inputs in;
  const ValueId q = tensor_op(in.graph, "mul", in.q, number(in.graph, 0.25F));
  in.graph.output("scaled", q);
  in.graph.output("y", product(in.graph, softmax(in.graph, product(in.graph, q, in.kt)), in.v));
  recognise_attention(in.graph, by_calls);
  EXPECT_THAT(calls_of(in.graph), ElementsAre("tensor_op mul", "attention_forward"));
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
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // logarithms of weights
    const ValueId weights = softmax(in.graph, product(in.graph, in.q, in.kt), -1, SoftmaxMode::log);
    in.graph.output("y", product(in.graph, weights, in.v));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // weights that are computed once
    const ValueId q = constant(in.graph, {2, 3, 4, 8}), kt = constant(in.graph, {2, 3, 8, 5});
    chain(in, product(in.graph, q, kt));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // values that images share
    const ValueId weights = softmax(in.graph, product(in.graph, in.q, in.kt));
    in.graph.output("y", product(in.graph, weights, in.graph.input("one", DType::f32, {1, 1, 5, 6})));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // divided by a tensor
    const ValueId scores = product(in.graph, in.q, in.kt);
    chain(in, tensor_op(in.graph, "div", scores, in.graph.input("d", DType::f32, {1, 1, 1, 5})));
  }));
  EXPECT_FALSE(is_recognised([&](Inputs& in) {  // a scale that no f32 holds
    chain(in, tensor_op(in.graph, "div", product(in.graph, in.q, in.kt), number(in.graph, 0)));
  }));
}

// The request of the attention that a graph became.
Request attention_of(const Graph& graph) {
  for (const Step& step : schedule(graph).steps) {
    if (step.request.operation == "attention_forward") return step.request;
  }
  throw std::logic_error("there is no attention");
}

// The calls that a change of the scores leaves of a chain of 4 queries and 5 keys.
template <class Change>
std::vector<std::string> calls_with(const Change& change, Inputs& in) {
  const ValueId scores =
      change(in.graph, tensor_op(in.graph, "mul", product(in.graph, in.q, in.kt), number(in.graph, 2)));
  in.graph.output("y", product(in.graph, softmax(in.graph, scores), in.v));
  recognise_attention(in.graph, by_calls);
  return calls_of(in.graph);
}

TEST(RecogniseAttention, AMaskThatPutsInfinitiesInIsAMask) {
  for (const bool hides : {false, true}) {
    for (const Extents& extents : {Extents{2, 1, 4, 5}, Extents{1, 1, 1, 5}, Extents{2, 3, 4, 1}}) {
      Inputs in;
      const auto calls = calls_with(
          [&](Graph& graph, ValueId scores) {
            const ValueId mask = graph.input("mask", DType::u8, extents), fill = number(graph, -infinity);
            return hides ? select(graph, mask, fill, scores) : select(graph, mask, scores, fill);
          },
          in);
      EXPECT_THAT(calls, hides ? ElementsAre("tensor_op not", "attention_forward")
                               : testing::Matcher<std::vector<std::string>>(ElementsAre("attention_forward")));
      const Request request = attention_of(in.graph);
      EXPECT_EQ(request.at("mask").extents, extents);
      EXPECT_EQ(request.find("bias"), nullptr);
    }
  }
}

// A query that sees no key gives the mean of the values then.
TEST(RecogniseAttention, AMaskThatPutsLowNumbersInIsABias) {
  for (const bool hides : {false, true}) {
    for (const float fill : {lowest, -1e9F}) {
      Inputs in;
      const auto calls = calls_with(
          [&](Graph& graph, ValueId scores) {
            const ValueId mask = graph.input("mask", DType::u8, {2, 1, 4, 5}), low = number(graph, fill);
            return hides ? select(graph, mask, low, scores) : select(graph, mask, scores, low);
          },
          in);
      EXPECT_THAT(calls, ElementsAre("tensor_op select", "attention_forward"));
      const Request request = attention_of(in.graph);
      EXPECT_EQ(request.at("bias").extents, (Extents{2, 1, 4, 5}));
      EXPECT_EQ(request.find("mask"), nullptr);
      const auto& operands = std::get<Call>(in.graph.nodes().at(1)).inputs;
      float seen = 1, hidden = 0;
      std::memcpy(&seen, in.graph.bytes(operands.at(hides ? 2 : 1).value)->data(), sizeof(seen));
      std::memcpy(&hidden, in.graph.bytes(operands.at(hides ? 1 : 2).value)->data(), sizeof(hidden));
      EXPECT_EQ(seen, 0);
      EXPECT_EQ(hidden, -1e30F);
    }
  }
}

TEST(RecogniseAttention, LayersShareWhatBecomesOfAMask) {
  for (const bool hides : {false, true}) {
    for (const float fill : {lowest, -infinity}) {
      Graph graph;
      const ValueId mask = graph.input("mask", DType::u8, {4, 4}), kt = graph.input("kt", DType::f32, {2, 3, 8, 4}),
                    v = graph.input("v", DType::f32, {2, 3, 4, 8});
      ValueId x = graph.input("q", DType::f32, {2, 3, 4, 8});
      for (int layer = 0; layer < 3; ++layer) {
        const ValueId own = graph.reshape(mask, {1, 1, 4, 4}), scores = product(graph, x, kt),
                      low = number(graph, fill);
        const ValueId masked = hides ? select(graph, own, low, scores) : select(graph, own, scores, low);
        x = product(graph, softmax(graph, masked), v);
      }
      graph.output("y", x);
      recognise_attention(graph, by_calls);
      EXPECT_EQ(calls_of(graph).size(), fill == lowest || hides ? 4U : 3U);
      EXPECT_EQ(schedule(graph).steps.size(), calls_of(graph).size());
    }
  }
}

TEST(RecogniseAttention, AMaskThatHidesIsNoMaskThatShows) {
  Graph graph;
  const ValueId mask = graph.input("mask", DType::u8, {1, 1, 4, 4}), kt = graph.input("kt", DType::f32, {2, 3, 8, 4}),
                v = graph.input("v", DType::f32, {2, 3, 4, 8});
  ValueId x = graph.input("q", DType::f32, {2, 3, 4, 8});
  for (const bool hides : {false, true}) {
    const ValueId scores = product(graph, x, kt), low = number(graph, lowest);
    const ValueId masked = hides ? select(graph, mask, low, scores) : select(graph, mask, scores, low);
    x = product(graph, softmax(graph, masked), v);
  }
  graph.output("y", x);
  recognise_attention(graph, by_calls);
  EXPECT_EQ(calls_of(graph).size(), 4U);
}

// The sum of the first one stands behind the second one.
TEST(RecogniseAttention, CallsStandBehindWhatTheyRead) {
  Inputs in;
  Graph& graph = in.graph;
  const ValueId a = graph.input("a", DType::f32, {1, 3, 4, 5}), b = graph.input("b", DType::f32, {2, 1, 1, 5});
  const auto weights = [&] {
    const ValueId scores = tensor_op(graph, "add", tensor_op(graph, "add", product(graph, in.q, in.kt), a), b);
    return softmax(graph, scores);
  };
  const ValueId first = weights(), second = weights();
  graph.output("second", product(graph, second, in.v));
  graph.output("first", product(graph, first, in.v));
  recognise_attention(graph, by_calls);
  EXPECT_THAT(calls_of(graph), ElementsAre("tensor_op add", "attention_forward", "tensor_op add", "attention_forward"));
  EXPECT_EQ(schedule(graph).steps.size(), 4U);
}

TEST(RecogniseAttention, OtherMasksStay) {
  const auto stays = [](const auto& change) {
    Inputs in;
    return !testing::Value(calls_with(change, in), testing::Contains("attention_forward"));
  };
  const auto mask = [](Graph& graph) { return graph.input("mask", DType::u8, {2, 1, 4, 5}); };
  for (const float fill : {-1e4F, 0.0F, 1e9F, infinity}) {  // numbers that scores may be
    EXPECT_TRUE(stays([&](Graph& graph, ValueId s) { return select(graph, mask(graph), s, number(graph, fill)); }));
  }
  EXPECT_TRUE(stays([&](Graph& graph, ValueId s) {  // other scores in the place of hidden ones
    return select(graph, mask(graph), s, graph.input("others", DType::f32, {2, 3, 4, 5}));
  }));
  EXPECT_TRUE(stays([&](Graph& graph, ValueId s) {  // a scale of what stands in the place of hidden ones
    return tensor_op(graph, "mul", select(graph, mask(graph), s, number(graph, lowest)), number(graph, 0.5F));
  }));
  EXPECT_TRUE(stays([&](Graph& graph, ValueId s) {  // keys that the mask hides may weigh more than those of the bias
    const ValueId sum = tensor_op(graph, "add", s, graph.input("bias", DType::f32, {2, 1, 1, 5}));
    return select(graph, mask(graph), sum, number(graph, lowest));
  }));
  EXPECT_TRUE(stays([&](Graph& graph, ValueId s) {  // two masks
    const ValueId one = select(graph, mask(graph), s, number(graph, -infinity));
    return select(graph, mask(graph), one, number(graph, -infinity));
  }));
  EXPECT_FALSE(stays([&](Graph& graph, ValueId s) {
    const ValueId sum = tensor_op(graph, "add", s, graph.input("bias", DType::f32, {2, 1, 1, 5}));
    return select(graph, mask(graph), sum, number(graph, -infinity));
  }));
}

// No score of f16 lies below its lowest finite number, and a bias of f16 would not swallow one.
TEST(RecogniseAttention, TheLowestNumberOfF16IsABiasOfF32) {
  for (const uint16_t bits : {uint16_t{0xfbff}, uint16_t{0xf0e2}}) {  // -65504 and -10000
    Graph graph;
    const ValueId q = graph.input("q", DType::f16, {2, 3, 4, 8}), kt = graph.input("kt", DType::f16, {2, 3, 8, 5}),
                  v = graph.input("v", DType::f16, {2, 3, 5, 6}), mask = graph.input("mask", DType::u8, {2, 1, 4, 5});
    auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(bits));
    std::memcpy(bytes->data(), &bits, sizeof(bits));
    const ValueId fill = graph.constant("fill", DType::f16, {1, 1, 1, 1}, std::move(bytes));
    graph.output("y", product(graph, softmax(graph, select(graph, mask, product(graph, q, kt), fill)), v));
    recognise_attention(graph, by_calls);
    if (bits == 0xfbff) {
      EXPECT_THAT(calls_of(graph), ElementsAre("tensor_op select", "attention_forward"));
      EXPECT_EQ(attention_of(graph).at("bias").dtype, DType::f32);
    } else {
      EXPECT_EQ(calls_of(graph).size(), 4U);
    }
  }
}

TEST(RecogniseAttention, TwoBiasesAreAddedUp) {
  Inputs in;
  const auto calls = calls_with(
      [&](Graph& graph, ValueId scores) {
        const ValueId sum = tensor_op(graph, "add", graph.input("a", DType::f32, {1, 3, 4, 5}), scores);
        return tensor_op(graph, "add", sum, graph.input("b", DType::f32, {2, 1, 1, 5}));
      },
      in);
  EXPECT_THAT(calls, ElementsAre("tensor_op add", "attention_forward"));
  EXPECT_EQ(attention_of(in.graph).at("bias").extents, (Extents{2, 3, 4, 5}));
  Inputs three;
  const auto calls_of_three = calls_with(
      [&](Graph& graph, ValueId scores) {
        for (const char* name : {"a", "b", "c"}) {
          scores = tensor_op(graph, "add", scores, graph.input(name, DType::f32, {1, 3, 4, 5}));
        }
        return scores;
      },
      three);
  EXPECT_EQ(calls_of_three.size(), 7U);
}

TEST(RecogniseAttention, ABiasMayStandInFrontOfTheScores) {
  for (const bool is_sum : {false, true}) {
    Inputs in;
    const auto calls = calls_with(
        [&](Graph& graph, ValueId scores) {
          ValueId bias = graph.input("bias", DType::f32, {2, 3, 4, 5});
          if (is_sum) {
            bias = tensor_op(graph, "add", bias, constant(graph, {1, 1, 4, 5}, triangle(4, 5, 0, 0, -infinity)));
          }
          return tensor_op(graph, "add", bias, scores);
        },
        in);
    EXPECT_EQ(calls.size(), is_sum ? 2U : 1U);
    const Request request = attention_of(in.graph);
    EXPECT_EQ(request.at("bias").extents, (Extents{2, 3, 4, 5}));
    EXPECT_EQ(request.ints("right").front(), -1) << "what was added to the bias stays there";
  }
}

// Attributes right and align of the attention that a constant mask leaves; right is 9 where that stays an operand.
std::pair<int64_t, std::string> places_with(int64_t queries, int64_t first, float hidden, bool is_bias,
                                            const std::function<void(std::vector<float>&)>& change = {}) {
  Graph graph;
  const ValueId q = graph.input("q", DType::f32, {2, 3, queries, 8}), kt = graph.input("kt", DType::f32, {2, 3, 8, 5}),
                v = graph.input("v", DType::f32, {2, 3, 5, 6});
  std::vector<float> elements = triangle(queries, 5, first, is_bias ? 0.0F : 1.0F, is_bias ? hidden : 0.0F);
  if (change) change(elements);
  ValueId scores = product(graph, q, kt);
  scores = is_bias ? tensor_op(graph, "add", scores, constant(graph, {1, 1, queries, 5}, elements))
                   : select(graph, flags(graph, {1, 1, queries, 5}, elements), scores, number(graph, hidden));
  graph.output("y", product(graph, softmax(graph, scores), v));
  recognise_attention(graph, by_calls);
  const Request request = attention_of(graph);
  const bool is_place = request.find("bias") == nullptr && request.find("mask") == nullptr;
  return {is_place ? request.ints("right").front() : 9, request.word("align")};
}

TEST(RecogniseAttention, AConstantTriangleIsAQuestionOfPlaces) {
  for (const bool is_bias : {false, true}) {
    for (const float hidden : {-infinity, lowest, -1e9F}) {
      EXPECT_THAT(places_with(5, 0, hidden, is_bias), Pair(0, "start"));
      EXPECT_THAT(places_with(3, 0, hidden, is_bias), Pair(0, "start"));
      EXPECT_THAT(places_with(3, 2, hidden, is_bias), Pair(0, "end"));
      EXPECT_THAT(places_with(3, 1, hidden, is_bias), Pair(9, "start"));
      EXPECT_THAT(places_with(6, 0, hidden, is_bias), Pair(9, "start"));
      for (const size_t at : {size_t{0}, size_t{4}, size_t{10}, size_t{14}}) {
        EXPECT_THAT(places_with(3, 2, hidden, is_bias,
                                [&](std::vector<float>& elements) {
                                  elements[at] = is_bias ? elements[at] == 0 ? hidden : 0 : 1 - elements[at];
                                }),
                    Pair(9, "start"))
            << at;
      }
    }
  }
  EXPECT_THAT(places_with(5, 0, -1e4F, true), Pair(9, "start"));
  EXPECT_THAT(places_with(5, 0, lowest, true, [](std::vector<float>& elements) { elements[5] = 1; }), Pair(9, "start"));
}

// Models of text slice a larger constant.
TEST(RecogniseAttention, ATriangleMayBePartOfAConstant) {
  Inputs in;
  const auto calls = calls_with(
      [&](Graph& graph, ValueId scores) {
        const ValueId all = flags(graph, {1, 1, 8, 8}, triangle(8, 8, 0, 1, 0));
        const ValueId some = graph.slice(all, {0, 0, 1, 0}, {1, 1, 4, 5}, {1, 1, 1, 1});
        const ValueId causal = select(graph, some, scores, number(graph, lowest));
        return tensor_op(graph, "add", causal, graph.input("padding", DType::f32, {2, 1, 1, 5}));
      },
      in);
  EXPECT_THAT(calls, ElementsAre("attention_forward"));
  const Request request = attention_of(in.graph);
  EXPECT_THAT(std::pair(request.ints("right").front(), request.word("align")), Pair(0, "end"));
  EXPECT_NE(request.find("bias"), nullptr);
}

// The other bias may hide all keys in front of a query.
TEST(RecogniseAttention, ATriangleOfNumbersBesideABiasIsABias) {
  for (const float hidden : {-infinity, lowest, -1e9F}) {
    Inputs in;
    const auto calls = calls_with(
        [&](Graph& graph, ValueId scores) {
          const ValueId causal =
              tensor_op(graph, "add", scores, constant(graph, {1, 1, 4, 5}, triangle(4, 5, 0, 0, hidden)));
          return tensor_op(graph, "add", causal, graph.input("padding", DType::f32, {2, 1, 1, 5}));
        },
        in);
    EXPECT_EQ(calls.size(), hidden == -1e9F ? 2U : 1U);
    EXPECT_EQ(attention_of(in.graph).ints("right").front(), hidden == -1e9F ? -1 : 0);
  }
}

TEST(RecogniseAttention, ATriangleMayStandBesideAMask) {
  Inputs in;
  const auto calls = calls_with(
      [&](Graph& graph, ValueId scores) {
        const ValueId places = constant(graph, {1, 1, 4, 5}, triangle(4, 5, 0, 0, -infinity));
        const ValueId causal = tensor_op(graph, "add", scores, places);
        return select(graph, graph.input("mask", DType::u8, {2, 1, 1, 5}), causal, number(graph, -infinity));
      },
      in);
  EXPECT_THAT(calls, ElementsAre("attention_forward"));
  const Request request = attention_of(in.graph);
  EXPECT_EQ(request.ints("right").front(), 0);
  EXPECT_EQ(request.find("bias"), nullptr);
  EXPECT_EQ(request.at("mask").extents, (Extents{2, 1, 1, 5}));
}

// The bound keeps large models quick: the second triangle of 20 elements stays a mask.
TEST(RecogniseAttention, LooksAtSoManyElementsOfConstants) {
  Inputs in;
  for (const char* name : {"first", "second"}) {
    const ValueId places = flags(in.graph, {1, 1, 4, 5}, triangle(4, 5, 0, 1, 0));
    const ValueId scores = select(in.graph, places, product(in.graph, in.q, in.kt), number(in.graph, -infinity));
    in.graph.output(name, product(in.graph, softmax(in.graph, scores), in.v));
  }
  const Edges edges(in.graph);
  int64_t elements_left = 30;
  std::vector<bool> causal;
  for (size_t index = 0; index < in.graph.nodes().size(); ++index) {
    if (const auto match = attention_at(in.graph, edges, index, elements_left)) {
      causal.push_back(match->causal.has_value());
    }
  }
  EXPECT_THAT(causal, ElementsAre(true, false));
  EXPECT_EQ(elements_left, 10);
}

TEST(RecogniseAttention, WeightsMayHaveZerosInThePlaceOfNan) {
  EXPECT_TRUE(is_recognised([](Inputs& in) {
    const ValueId weights = softmax(in.graph, product(in.graph, in.q, in.kt));
    in.graph.output("y", product(in.graph, without_nan(in.graph, weights), in.v));
  }));
  EXPECT_FALSE(is_recognised([](Inputs& in) {  // another number
    const ValueId p = softmax(in.graph, product(in.graph, in.q, in.kt));
    in.graph.output("y", product(in.graph, select(in.graph, is_nan(in.graph, p), number(in.graph, 1), p), in.v));
  }));
  EXPECT_FALSE(is_recognised([](Inputs& in) {  // other flags
    const ValueId p = softmax(in.graph, product(in.graph, in.q, in.kt));
    in.graph.output("nan", is_nan(in.graph, p));
    const ValueId mask = in.graph.input("mask", DType::u8, {2, 3, 4, 5});
    in.graph.output("y", product(in.graph, select(in.graph, mask, number(in.graph, 0), p), in.v));
  }));
  EXPECT_FALSE(is_recognised([](Inputs& in) {  // weights that are read elsewhere
    const ValueId p = softmax(in.graph, product(in.graph, in.q, in.kt));
    in.graph.output("weights", p);
    in.graph.output("y", product(in.graph, without_nan(in.graph, p), in.v));
  }));
  EXPECT_FALSE(is_recognised([](Inputs& in) {  // flags that are read elsewhere
    const ValueId p = softmax(in.graph, product(in.graph, in.q, in.kt)), nan = is_nan(in.graph, p);
    in.graph.output("nan", nan);
    in.graph.output("y", product(in.graph, select(in.graph, nan, number(in.graph, 0), p), in.v));
  }));
}

// Softmax of a matrix, as before opset 13, and products of heads without images round a mask of both.
TEST(RecogniseAttention, RowsMayBeReshaped) {
  for (const bool masked : {false, true}) {
    Graph graph;
    const auto heads = [&](const char* name, int64_t rows) {
      const ValueId x = graph.permute(graph.input(name, DType::f32, {2, rows, 3, 8}), {0, 2, 1, 3});
      return graph.reshape(x, {6, rows, 8});
    };
    const ValueId q = heads("q", 4), kt = graph.permute(heads("k", 5), {0, 2, 1}), v = heads("v", 5);
    ValueId scores = product(graph, q, kt);
    if (masked) {
      scores =
          tensor_op(graph, "add", graph.reshape(scores, {2, 3, 4, 5}), graph.input("mask", DType::f32, {2, 1, 1, 5}));
    }
    const ValueId weights = graph.reshape(softmax(graph, graph.reshape(scores, {24, 5})), {6, 4, 5});
    const ValueId y = graph.permute(graph.reshape(product(graph, weights, v), {2, 3, 4, 8}), {0, 2, 1, 3});
    graph.output("y", graph.reshape(y, {2, 4, 24}));
    recognise_attention(graph, by_calls);
    const Schedule steps = schedule(graph);
    ASSERT_EQ(steps.steps.size(), 1U) << "nothing is copied";
    const Request& request = steps.steps[0].request;
    for (const char* name : {"q", "k", "v", "y"}) {
      const int64_t rows = request.at(name).extents[2];
      EXPECT_EQ(request.at(name).extents, (Extents{2, 3, rows, 8}));
      EXPECT_EQ(request.at(name).strides, (Extents{rows * 24, 8, 24, 1})) << name;
    }
    EXPECT_EQ(request.find("bias") != nullptr, masked);
  }
}

TEST(RecogniseAttention, HeadsOfKeysMayBeTakenApartBehindTheirElements) {
  Graph graph;
  const ValueId q = graph.input("q", DType::f32, {2, 3, 4, 8}), v = graph.input("v", DType::f32, {2, 3, 5, 6});
  const ValueId turned = graph.permute(graph.input("k", DType::f32, {2, 5, 24}), {0, 2, 1});
  graph.output("y", product(graph, softmax(graph, product(graph, q, graph.reshape(turned, {2, 3, 8, 5}))), v));
  recognise_attention(graph, by_calls);
  ASSERT_THAT(calls_of(graph), ElementsAre("attention_forward"));
  EXPECT_EQ(attention_of(graph).at("k").strides, (Extents{120, 8, 24, 1}));
}

TEST(RecogniseAttention, OtherReshapesStay) {
  EXPECT_FALSE(is_recognised([](Inputs& in) {  // several rows as one, as Softmax of opset 12 has them by default
    const ValueId rows = in.graph.reshape(product(in.graph, in.q, in.kt), {6, 20});
    const ValueId weights = in.graph.reshape(softmax(in.graph, rows), {2, 3, 4, 5});
    in.graph.output("y", product(in.graph, weights, in.v));
  }));
  EXPECT_FALSE(is_recognised([](Inputs& in) {  // queries of all heads with the values of one
    const ValueId weights = in.graph.reshape(softmax(in.graph, product(in.graph, in.q, in.kt)), {24, 5});
    in.graph.output("y", product(in.graph, weights, in.graph.input("one", DType::f32, {5, 6})));
  }));
  EXPECT_FALSE(is_recognised([](Inputs& in) {  // no key, which other images have, too
    const ValueId none = in.graph.input("none", DType::f32, {2, 3, 8, 0});
    const ValueId weights = softmax(in.graph, in.graph.reshape(product(in.graph, in.q, none), {5, 4, 0}));
    in.graph.output("y", product(in.graph, weights, in.graph.input("others", DType::f32, {5, 0, 6})));
  }));
}

// Windows of images, whose masks repeat along the images and the heads, and whose biases repeat along the windows.
TEST(RecogniseAttention, WindowsAreImages) {
  for (const int64_t images : {1, 2}) {
    Graph graph;
    const int64_t windows = 2 * images;
    const ValueId q = graph.input("q", DType::f32, {windows, 3, 4, 8}),
                  kt = graph.input("kt", DType::f32, {windows, 3, 8, 4}),
                  v = graph.input("v", DType::f32, {windows, 3, 4, 8});
    ValueId scores = tensor_op(graph, "add", product(graph, q, kt), constant(graph, {1, 3, 4, 4}));
    scores = tensor_op(graph, "add", graph.reshape(scores, {images, 2, 3, 4, 4}), constant(graph, {1, 2, 1, 4, 4}));
    scores = graph.reshape(scores, {windows, 3, 4, 4});
    graph.output("y", product(graph, softmax(graph, scores), v));
    recognise_attention(graph, by_calls);
    if (images == 1) {
      EXPECT_THAT(calls_of(graph), ElementsAre("tensor_op add", "attention_forward"));
      EXPECT_EQ(schedule(graph).steps.size(), 1U) << "the sum is made once";
      EXPECT_EQ(attention_of(graph).at("bias").extents, (Extents{2, 3, 4, 4}));
    } else {
      EXPECT_EQ(calls_of(graph).size(), 5U) << "the masks repeat along a part of the images";
    }
  }
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 3, 4, 5, 8});
  const ValueId scores = product(graph, x, graph.permute(x, {0, 1, 2, 4, 3}));
  graph.output("y", product(graph, softmax(graph, scores), x));
  recognise_attention(graph, by_calls);
  ASSERT_THAT(calls_of(graph), ElementsAre("attention_forward"));
  EXPECT_EQ(attention_of(graph).at("k").extents, (Extents{6, 4, 5, 8}));
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
