// Every operation that is computed while a model is read, over constants of every wrong kind: types, ranks, integers
// that overflow, NaN, nothing at all. Each is computed or refused with an Error; types that ONNX does not permit never
// give a result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <limits>
#include <map>
#include <set>

#include "listing.h"
#include "onnx/host_nodes.h"

namespace kiln::test::onnx_host_table_test {
namespace {

using Type = onnx::TensorProto;

constexpr int64_t opset = 13;

/// A constant of a node.
struct Constant {
  int32_t type = Type::INT64;
  Ints extents;
  std::vector<double> elements;
};

struct Row {
  std::vector<Constant> inputs;
  Attributes attributes;
};

Constant integers(const std::vector<double>& elements) {
  return {Type::INT64, {std::ssize(elements)}, elements};
}
Constant scalar(double element) {
  return {Type::INT64, {}, {element}};
}
Constant reals(const std::vector<double>& elements) {
  return {Type::FLOAT, {std::ssize(elements)}, elements};
}
Constant flags(const std::vector<double>& elements) {
  return {Type::BOOL, {std::ssize(elements)}, elements};
}

/// A right node of each operation.
const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> all = [] {
    std::map<std::string, Row> table = {
        {"Range", {{scalar(0), scalar(5), scalar(2)}, {}}},
        {"Gather", {{integers({5, 6, 7}), integers({2, 0})}, {{"axis", 0}}}},
        {"Concat", {{integers({1, 2}), integers({3})}, {{"axis", 0}}}},
        {"Slice", {{integers({1, 2, 3, 4}), integers({1}), integers({3}), integers({0}), integers({1})}, {}}},
        {"Transpose", {{integers({1, 2})}, {{"perm", Ints{0}}}}},
        {"Expand", {{integers({3}), integers({2, 2})}, {}}},
        {"Cast", {{integers({1, 2})}, {{"to", int64_t{Type::FLOAT}}}}},
        {"Where", {{flags({1, 0}), integers({1, 2}), integers({3, 4})}, {}}},
        {"NonZero", {{integers({0, 1})}, {}}},
        {"Identity", {{integers({0, 1})}, {}}},
        {"Reshape", {{integers({1, 2, 3, 4}), integers({2, -1})}, {}}},
        {"Flatten", {{integers({1, 2})}, {{"axis", 0}}}},
        {"Squeeze", {{integers({1}), integers({0})}, {}}},
        {"Unsqueeze", {{integers({1, 2}), integers({0})}, {}}},
        {"And", {{flags({1, 0}), flags({1})}, {}}},
        {"Or", {{flags({1, 0}), flags({1})}, {}}},
        {"Not", {{flags({1, 0})}, {}}},
        {"Shape", {{integers({1, 2})}, {}}},
        {"Size", {{integers({1, 2})}, {}}},
        {"ReduceSum", {{integers({1, 2})}, {{"keepdims", 1}}}}};
    for (const char* name : {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "Equal", "Less", "LessOrEqual",
                             "Greater", "GreaterOrEqual"}) {
      table[name] = {{integers({4, 5}), integers({2})}, {}};
    }
    for (const char* name : {"Neg", "Abs"}) table[name] = {{integers({4, -5})}, {}};
    for (const char* name : {"Floor", "Ceil", "Round", "Sqrt", "Exp", "Log", "Reciprocal"}) {
      table[name] = {{reals({4, 5})}, {}};
    }
    for (const char* name : {"ReduceProd", "ReduceMax", "ReduceMin"}) table[name] = {{integers({1, 2})}, {}};
    return table;
  }();
  return all;
}

void add(OnnxModel& model, const std::string& name, const Constant& constant) {
  onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(constant.type);
  for (const int64_t extent : constant.extents) tensor.add_dims(extent);
  for (const double element : constant.elements) {
    if (constant.type == Type::FLOAT) tensor.add_float_data(static_cast<float>(element));
    if (constant.type == Type::INT64) tensor.add_int64_data(static_cast<int64_t>(element));
    if (constant.type == Type::BOOL) tensor.add_int32_data(element != 0 ? 1 : 0);
  }
}

enum class Outcome { host, device, refused };

std::ostream& operator<<(std::ostream& out, Outcome outcome) {
  return out << (outcome == Outcome::host ? "host" : outcome == Outcome::device ? "device" : "refused");
}

/// Where a node over constants is computed.
Outcome outcome_of(const std::string& operation, const Row& row) {
  OnnxModel model(opset);
  std::vector<std::string> names;
  for (const Constant& constant : row.inputs) {
    names.push_back("c" + std::to_string(names.size()));
    add(model, names.back(), constant);
  }
  model.node(operation, names, {"y"}, row.attributes);
  model.output("y");
  const TemporaryFile file(model.bytes());
  try {
    const models::Lowered made = models::lower(file.path(), {});
    if (!made.model.uncovered.empty()) return Outcome::refused;
    const graph::Graph& graph = made.model.graph;
    return graph.is_constant(graph.outputs().at(0).value) ? Outcome::host : Outcome::device;
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    // The second is said of the model's output, once the node has given it.
    EXPECT_THAT(error.message(), testing::AnyOf(testing::HasSubstr(operation), testing::HasSubstr("constant 'y'")));
    return Outcome::refused;
  }
}

std::string name_of(int32_t type) {
  return type == Type::FLOAT ? "tensor(float)" : type == Type::INT64 ? "tensor(int64)" : "tensor(bool)";
}

/// Whether ONNX permits these types.
bool has_legal_types(const std::string& operation, const Row& row) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(operation, static_cast<int>(opset));
  std::map<std::string, int32_t> meant;  // by a type that several inputs share
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const auto& formal = schema->inputs()[std::min(i, schema->inputs().size() - 1)];
    const int32_t type = row.inputs[i].type;
    std::set<std::string> permitted;
    for (const auto* name : formal.GetTypes()) permitted.insert(*name);
    if (!permitted.contains(name_of(type))) return false;
    if (meant.try_emplace(formal.GetTypeStr(), type).first->second != type) return false;
  }
  return true;
}

/// The constant in every wrong way.
std::vector<std::pair<std::string, Constant>> changed(const Constant& constant) {
  constexpr double least = -0x1p63, infinite = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::pair<std::string, Constant>> all;
  for (const int32_t type : {Type::FLOAT, Type::INT64, Type::BOOL}) {
    if (type != constant.type) all.push_back({"of type " + name_of(type), {type, constant.extents, constant.elements}});
  }
  all.push_back({"of rank 0", {constant.type, {}, {constant.elements[0]}}});
  Constant deeper = constant;
  deeper.extents.insert(deeper.extents.begin(), 1);
  all.push_back({"of one dimension more", deeper});
  all.push_back({"of nine dimensions", {constant.type, Ints(9, 1), {constant.elements[0]}}});
  all.push_back({"empty", {constant.type, {0}, {}}});
  all.push_back({"empty in two dimensions", {constant.type, {0, 3}, {}}});
  const auto of = [&](const std::string& words, int32_t type, double element) {
    all.push_back({words, {type, constant.extents, std::vector<double>(constant.elements.size(), element)}});
  };
  for (const double element : {least, -1.0, 0.0, 0x1p40, 0x1p62})
    of("all " + std::to_string(element), constant.type, element);
  for (const double element : {nan, infinite, -infinite}) of("all " + std::to_string(element), Type::FLOAT, element);
  return all;
}

TEST(OnnxHostTable, HasARowForEachOperation) {
  std::set<std::string> known, listed;
  for (const std::string& name : onnx_frontend::host_operations()) known.insert(name);
  for (const auto& [name, row] : rows()) listed.insert(name);
  EXPECT_EQ(listed, known);
}

TEST(OnnxHostTable, RightConstantsAreComputedWhileTheModelIsRead) {
  for (const auto& [operation, row] : rows()) EXPECT_EQ(outcome_of(operation, row), Outcome::host) << operation;
}

TEST(OnnxHostTable, WrongConstantsEndInAnErrorOrInAResult) {
  size_t tried = 0;
  for (const auto& [operation, row] : rows()) {
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      for (const auto& [words, constant] : changed(row.inputs[i])) {
        SCOPED_TRACE(operation + ", input " + std::to_string(i) + " " + words);
        Row wrong = row;
        wrong.inputs[i] = constant;
        const Outcome outcome = outcome_of(operation, wrong);
        EXPECT_TRUE(has_legal_types(operation, wrong) || outcome == Outcome::refused) << outcome;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, rows().size() * 10);
}

/// As above, in all inputs at once.
TEST(OnnxHostTable, ConstantsThatAreWrongTogetherEndInAnErrorOrInAResult) {
  for (const auto& [operation, row] : rows()) {
    const size_t ways = changed(row.inputs[0]).size();
    for (size_t way = 0; way < ways; ++way) {
      Row wrong = row;
      for (Constant& constant : wrong.inputs) constant = changed(constant).at(way).second;
      SCOPED_TRACE(operation + ", inputs " + changed(row.inputs[0]).at(way).first);
      const Outcome outcome = outcome_of(operation, wrong);
      EXPECT_TRUE(has_legal_types(operation, wrong) || outcome == Outcome::refused) << outcome;
    }
  }
}

}  // namespace
}  // namespace kiln::test::onnx_host_table_test
