#include "node_tests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

template <class Message>
Message read(const fs::path& path) {
  Message message;
  std::ifstream file(path, std::ios::binary);
  if (!file || !message.ParseFromIstream(&file)) throw std::runtime_error("cannot read " + path.string());
  return message;
}

std::string operation_of(const onnx::ModelProto& model) {
  return model.graph().node_size() == 1 ? model.graph().node(0).op_type() : "several";
}

bool has_tensors_only(const onnx::GraphProto& graph) {
  const auto all_tensors = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](const auto& value) { return value.type().has_tensor_type(); });
  };
  return all_tensors(graph.input()) && all_tensors(graph.output());
}

std::vector<onnx::TensorProto> tensors_in(const fs::path& folder, const std::string& kind) {
  std::vector<onnx::TensorProto> tensors;
  for (int i = 0; fs::exists(folder / fmt::format("{}_{}.pb", kind, i)); ++i) {
    tensors.push_back(read<onnx::TensorProto>(folder / fmt::format("{}_{}.pb", kind, i)));
  }
  return tensors;
}

/// Which inputs of a node say how it computes, rather than what.
const std::map<std::string, std::set<int>>& parameters() {
  static const std::map<std::string, std::set<int>> inputs = {
      {"Clip", {1, 2}},    {"ConstantOfShape", {0}}, {"CumSum", {1}},
      {"Dropout", {1, 2}}, {"GatherND", {1}},        {"If", {0}},
      {"Scatter", {1}},    {"ScatterElements", {1}}, {"ScatterND", {1}},
      {"Expand", {1}},     {"MaxUnpool", {2}},       {"OneHot", {1, 2}},
      {"Pad", {1, 2, 3}},  {"Range", {0, 1, 2}},     {"ReduceSum", {1}},
      {"Reshape", {1}},    {"Resize", {1, 2, 3}},    {"Slice", {1, 2, 3, 4}},
      {"Split", {1}},      {"Squeeze", {1}},         {"Tile", {1}},
      {"TopK", {1}},       {"Trilu", {1}},           {"Unsqueeze", {1}},
      {"Upsample", {1}},
  };
  return inputs;
}

/// The values of a model's graph that some node takes as a parameter.
std::set<std::string> parameters_of(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : graph.node()) {
    const auto found = parameters().find(node.op_type());
    if (found == parameters().end()) continue;
    for (const int input : found->second) {
      if (input < node.input_size() && !node.input(input).empty()) names.insert(node.input(input));
    }
  }
  return names;
}

constexpr int64_t oldest_opset = 7;  // that Kiln reads

bool is_before_oldest(const onnx::ModelProto& model) {
  const auto& opsets = model.opset_import();
  return std::any_of(opsets.begin(), opsets.end(),
                     [](const auto& opset) { return opset.domain().empty() && opset.version() < oldest_opset; });
}

/// By ONNX's own converter; false where it cannot.
bool convert_to_oldest(onnx::ModelProto& model) {
  try {
    model = onnx::version_conversion::ConvertVersion(model, oldest_opset);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// A file of the model, until the next one is written.
fs::path written(const onnx::ModelProto& model) {
  const fs::path file = testing::TempDir() + "model.onnx";
  std::ofstream(file, std::ios::binary) << model.SerializeAsString();
  return file;
}

}  // namespace

std::vector<NodeTest> node_tests_in(const fs::path& data) {
  std::vector<NodeTest> tests;
  for (const char* group : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    for (const auto& entry : fs::directory_iterator(data / group)) {
      const std::string name = entry.path().filename();
      tests.push_back({name.substr(std::string("test_").size()), entry.path(),
                       operation_of(read<onnx::ModelProto>(entry.path() / "model.onnx"))});
    }
  }
  std::sort(tests.begin(), tests.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return tests;
}

std::vector<DataSet> data_sets_of(const NodeTest& test) {
  std::vector<DataSet> sets;
  if (!has_tensors_only(read<onnx::ModelProto>(test.folder / "model.onnx").graph())) return sets;
  for (int i = 0; fs::exists(test.folder / fmt::format("test_data_set_{}", i)); ++i) {
    const fs::path folder = test.folder / fmt::format("test_data_set_{}", i);
    sets.push_back({tensors_in(folder, "input"), tensors_in(folder, "output")});
  }
  return sets;
}

bool with_constants(onnx::ModelProto& model, std::vector<DataSet>& sets) {
  onnx::GraphProto& graph = *model.mutable_graph();
  const std::set<std::string> names = parameters_of(graph);
  bool any = false;
  for (int i = graph.input_size() - 1; i >= 0; --i) {
    const auto place = static_cast<size_t>(i);
    if (!names.contains(graph.input(i).name()) || place >= sets.front().inputs.size()) continue;
    *graph.add_initializer() = sets.front().inputs[place];
    graph.mutable_initializer()->rbegin()->set_name(graph.input(i).name());
    graph.mutable_input()->DeleteSubrange(i, 1);
    for (DataSet& set : sets) set.inputs.erase(set.inputs.begin() + i);
    any = true;
  }
  return any;
}

Outcome outcome_of(const NodeTest& test, const RunModel& run) {
  using enum Outcome::Kind;
  const auto tried = [&](const fs::path& model, const std::vector<DataSet>& sets, Outcome::Kind kind) -> Outcome {
    try {
      const std::string fault = run(model, sets);
      return fault.empty() ? Outcome{kind, ""} : Outcome{wrong, fault};
    } catch (const Refusal& refusal) {
      return {refused, refusal.reason};
    }
  };
  std::vector<DataSet> sets = data_sets_of(test);
  auto model = read<onnx::ModelProto>(test.folder / "model.onnx");
  const bool is_old = is_before_oldest(model);
  if (is_old && !convert_to_oldest(model)) return {refused, "ONNX does not convert it from opset 6"};
  Outcome outcome = tried(is_old ? written(model) : test.folder / "model.onnx", sets, passed);
  // All sets of a test would have to agree on its constants.
  if (outcome.kind != refused || sets.size() != 1 || !with_constants(model, sets)) return outcome;
  return tried(written(model), sets, passed_with_constants);
}

}  // namespace kiln::test
