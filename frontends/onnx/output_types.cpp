#include "onnx/output_types.h"

#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <string>

#include "onnx/load.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {
namespace {

using Type = onnx::TensorProto;

// ONNX's inference was not written for files of strangers. It gets one node at a time, no bodies, whose sizes load.h
// has checked, and no more of it than shapes are made of.
constexpr int most_operands = 64;
constexpr size_t most_elements = 1024, most_bytes = size_t{1} << 16;
constexpr int64_t most_extents = int64_t{1} << 16;  // Expand makes as many dimensions as there are, known or not
constexpr int64_t steps_of_an_inference = int64_t{1} << 15;  // as the budget counts them

/// An input as ONNX's inference sees it: integers with their elements, which shapes are made of.
void add_input(onnx::GraphProto& graph, const Node& node, int input) {
  const std::string& name = node.proto().input(input);
  const int32_t type = node.element_type(input);
  const HostTensor* elements = type == Type::INT64 || type == Type::INT32 ? node.host(input) : nullptr;
  if (elements != nullptr && elements->rank() <= 1 && elements->size() <= most_elements) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const int64_t extent : elements->extents()) tensor.add_dims(extent);
    for (const int64_t value : elements->integers()) {
      if (type == Type::INT64) {
        tensor.add_int64_data(value);
      } else {
        tensor.add_int32_data(static_cast<int32_t>(value));
      }
    }
    return;
  }
  onnx::ValueInfoProto& value = *graph.add_input();
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  const bool may_be_extents = node.rank(input) == 1 && (type == Type::INT64 || type == Type::INT32);
  for (const int64_t extent : node.extents(input)) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    if (!may_be_extents || extent <= most_extents) dimension.set_dim_value(extent);
  }
}

/// A model of this node alone.
onnx::ModelProto model_of(const Node& node) {
  onnx::ModelProto model;
  model.set_ir_version(onnx::IR_VERSION);
  model.add_opset_import()->set_version(node.opset());
  onnx::GraphProto& graph = *model.mutable_graph();
  std::set<std::string> added;
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.has(i) && added.insert(node.proto().input(i)).second) add_input(graph, node, i);
  }
  *graph.add_node() = node.proto();
  return model;
}

std::optional<TensorType> type_in(const onnx::GraphProto& graph, const std::string& name) {
  const auto found = std::find_if(graph.value_info().begin(), graph.value_info().end(),
                                  [&](const onnx::ValueInfoProto& value) { return value.name() == name; });
  if (name.empty() || found == graph.value_info().end() || !found->type().tensor_type().has_shape()) return {};
  const auto& tensor = found->type().tensor_type();
  TensorType result{tensor.elem_type(), {}};
  for (const auto& dimension : tensor.shape().dim()) {
    if (!dimension.has_dim_value() || dimension.dim_value() < 0) return {};
    result.extents.push_back(dimension.dim_value());
  }
  return result;
}

/// Whether a filter has as many dimensions as what it is applied to. ONNX's inference takes the window from the filter,
/// and reads a stride and a dilation for each of its dimensions, of which there are as many as the input's.
bool fits_its_filter(const Node& node) {
  static const std::map<std::string, int> filters = {
      {"Conv", 1}, {"ConvTranspose", 1}, {"ConvInteger", 1}, {"QLinearConv", 3}};
  const auto filter = filters.find(node.type());
  return filter == filters.end() ||
         (node.has(0) && node.has(filter->second) && node.rank(0) == node.rank(filter->second));
}

/// Whether the extents that an operator takes are of the type that the operator demands. ONNX's inference makes a
/// dimension for each element of them, of whatever type they are, and add_input() hides the number of int64 alone.
bool has_extents_of_int64(const Node& node) {
  static const std::map<std::string, int> operands = {
      {"ConstantOfShape", 0}, {"Expand", 1}, {"Reshape", 1}, {"Tile", 1}};
  const auto extents = operands.find(node.type());
  return extents == operands.end() || !node.has(extents->second) || node.element_type(extents->second) == Type::INT64;
}

/// ONNX's inference reads the types of a MaxUnpool's inputs without looking whether there are any: its extents are
/// ours.
std::optional<TensorType> type_of_unpooled(const Node& node) {
  if (!node.has(0) || node.rank() < 3) return {};
  const Extents& x = node.extents(0);
  TensorType result{node.element_type(0), {x[0], x[1]}};
  if (node.has(2)) {
    const HostTensor* extents = node.host(2);
    if (extents == nullptr || !extents->is_integer() || extents->size() != x.size()) return {};
    result.extents = extents->integers();
    return result;
  }
  const PerAxis spatial = unpooled_outputs(node.proto(), x);
  result.extents.insert(result.extents.end(), spatial.begin(), spatial.end());
  return result;
}

}  // namespace

std::vector<std::optional<TensorType>> inferred_outputs(const Node& node) {
  std::vector<std::optional<TensorType>> types(static_cast<size_t>(node.outputs()));
  const bool has_bodies =
      std::any_of(node.proto().attribute().begin(), node.proto().attribute().end(),
                  [](const auto& attribute) { return attribute.has_g() || attribute.graphs_size() > 0; });
  const bool is_large =
      node.inputs() > most_operands || node.outputs() > most_operands || node.proto().ByteSizeLong() > most_bytes;
  if (!is_onnx_domain(node.proto().domain()) || has_bodies || is_large || !node.knows_inputs()) return types;
  if (!fits_its_filter(node) || !has_extents_of_int64(node)) return types;
  if (node.type() == "MaxUnpool") {
    types.front() = type_of_unpooled(node);
    return types;
  }
  node.budget().take_elements(1, steps_of_an_inference);
  onnx::ModelProto model = model_of(node);
  const google::protobuf::LogSilencer silence;
  try {
    // Inference takes for granted that inputs and attributes are there which the operation demands.
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.type(), static_cast<int>(node.opset()));
    if (schema == nullptr) return types;
    schema->Verify(node.proto());
    onnx::shape_inference::InferShapes(model);
  } catch (const std::exception&) {
    return types;  // it is not inferred
  }
  for (int i = 0; i < node.outputs(); ++i)
    types[static_cast<size_t>(i)] = type_in(model.graph(), node.proto().output(i));
  return types;
}

}  // namespace kiln::onnx_frontend
