// Nodes of every operator of ONNX with operands and attributes at random: whatever becomes of them, reading ends,
// without a signal. Nodes that Kiln does not cover go to ONNX's own inference, which was not written for files of
// strangers.
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"
#include "onnx_model.h"

namespace kiln::test::onnx_inference_test {
namespace {

using Type = onnx::TensorProto;
using Attribute = onnx::AttributeProto;

class RandomNodes {
 public:
  explicit RandomNodes(unsigned seed) : random_(seed) {}

  /// A model of one node of the operator and a node behind it.
  onnx::ModelProto model_of(const onnx::OpSchema& schema) {
    OnnxModel model(std::max(schema.since_version(), 7));
    common_rank_ = below(6);
    onnx::NodeProto& node = model.node(schema.Name(), {}, {"u"});
    const int inputs = std::min(schema.max_input(), schema.min_input() + static_cast<int>(below(4)));
    for (int i = 0; i < inputs; ++i) node.add_input(add_input(model, schema, i));
    for (int i = 1; i < schema.min_output(); ++i) node.add_output("u" + std::to_string(i));
    for (const auto& [name, attribute] : schema.attributes()) {
      if (attribute.required || below(2) == 0) add_attribute(node, name, attribute.type);
    }
    model.node("Identity", {"u"}, {"y"});
    model.output("y");
    return model.proto();
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }

  int64_t number() {
    constexpr int64_t numbers[] = {0, 1, 2, 3, 4, 5, -1, -2, 7, 16, 1 << 20, int64_t{1} << 40, INT64_MAX, INT64_MIN};
    return numbers[below(below(8) == 0 ? std::size(numbers) : 8)];
  }

  std::string word() {
    constexpr const char* words[] = {"",    "NOTSET",        "SAME_UPPER", "VALID",
                                     "sum", "bidirectional", "linear",     "ij,jk->ik"};
    return words[below(std::size(words))];
  }

  std::string add_input(OnnxModel& model, const onnx::OpSchema& schema, int i) {
    const auto& parameter = schema.inputs()[std::min(static_cast<size_t>(i), schema.inputs().size() - 1)];
    if (parameter.GetOption() != onnx::OpSchema::Single && below(4) == 0) return "";
    const std::string name = "x" + std::to_string(i);
    const bool takes_integers = parameter.GetTypes().contains(onnx::Utils::DataTypeUtils::ToType("tensor(int64)"));
    const bool takes_reals = parameter.GetTypes().contains(onnx::Utils::DataTypeUtils::ToType("tensor(float)"));
    if (takes_integers && !takes_reals && below(2) == 0) {
      Ints values(below(7));
      for (int64_t& value : values) value = number();
      model.integers(name, values);
      return name;
    }
    std::vector<Extent> extents(below(4) == 0 ? below(7) : common_rank_);
    for (Extent& extent : extents) extent = static_cast<int64_t>(below(6));
    model.input(name, extents, takes_reals ? Type::FLOAT : takes_integers ? Type::INT64 : Type::UINT8);
    return name;
  }

  void add_attribute(onnx::NodeProto& node, const std::string& name, Attribute::AttributeType type) {
    Attribute attribute;
    attribute.set_name(name);
    attribute.set_type(type);
    switch (type) {
      case Attribute::INT:
        attribute.set_i(number());
        break;
      case Attribute::FLOAT:
        attribute.set_f(0.5F);
        break;
      case Attribute::STRING:
        attribute.set_s(word());
        break;
      case Attribute::INTS:
        for (size_t count = below(3) == 0 ? below(8) : common_rank_; count > 0; --count) attribute.add_ints(number());
        break;
      case Attribute::FLOATS:
        for (size_t count = below(4); count > 0; --count) attribute.add_floats(0.5F);
        break;
      case Attribute::STRINGS:
        for (size_t count = below(4); count > 0; --count) attribute.add_strings(word());
        break;
      default:
        return;
    }
    *node.add_attribute() = attribute;
  }

  std::minstd_rand random_;
  size_t common_rank_ = 0;  // of most operands of a node
};

TEST(OnnxInference, OfEveryOperatorEndsWhateverTheNodeIsLike) {
  constexpr int nodes_of_an_operator = 40;
  size_t read = 0, refused = 0;
  unsigned seed = 1;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    if (!schema.domain().empty() || schema.Deprecated()) continue;
    RandomNodes nodes(seed++);
    SCOPED_TRACE(schema.Name());  // printed where the process ends by an assertion
    for (int i = 0; i < nodes_of_an_operator; ++i) {
      const TemporaryFile file(nodes.model_of(schema).SerializeAsString());
      try {
        (void)read_onnx(file.path());
        ++read;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 3000U);
  EXPECT_GT(refused, 3000U);
}

// A division by parts of 0, the extents of a scalar: each ended the process.
TEST(OnnxInference, IsNotAskedAboutOperatorsThatItCannotBear) {
  const auto is_uncovered = [](OnnxModel& model) {
    model.output("y");
    const TemporaryFile file(model.bytes());
    EXPECT_EQ(read_onnx(file.path()).uncovered.size(), 1U);
  };
  OnnxModel spectrum(17);
  spectrum.input("x", {}).input("window", {0, 5}).integers("step", {1}).integers("length", {-2});
  spectrum.node("STFT", {"x", "step", "window", "length"}, {"y"}, {{"onesided", int64_t{-1}}});
  is_uncovered(spectrum);
  OnnxModel split(11);
  split.input("x", {0, 5, 4}).integers("part", {0});
  split.node("SplitToSequence", {"x", "part"}, {"y"});
  is_uncovered(split);
  for (const char* type : {"LSTM", "GRU", "RNN"}) {
    OnnxModel layer(7);
    layer.input("x", {}).input("w", {}).input("r", {});
    layer.node(type, {"x", "w", "r"}, {"y"}, {{"hidden_size", int64_t{-1}}, {"clip", 1.0F}});
    is_uncovered(layer);
  }
}

}  // namespace
}  // namespace kiln::test::onnx_inference_test
