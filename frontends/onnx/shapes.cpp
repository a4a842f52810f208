#include "onnx/shapes.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "onnx/graph.h"
#include "onnx/load.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

/// The shapes of the values that callers pass in.
std::vector<onnx::TensorShapeProto*> input_shapes(onnx::GraphProto& graph) {
  std::set<std::string> initialised;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    initialised.insert(tensor.name());
  }
  std::vector<onnx::TensorShapeProto*> shapes;
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    const bool has_shape = input.type().has_tensor_type() && input.type().tensor_type().has_shape();
    if (has_shape && !initialised.contains(input.name()) && input.type().tensor_type().shape().dim_size() > 0) {
      shapes.push_back(input.mutable_type()->mutable_tensor_type()->mutable_shape());
    }
  }
  return shapes;
}

std::vector<onnx::TensorShapeProto*> all_shapes(onnx::GraphProto& graph) {
  std::vector<onnx::TensorShapeProto*> shapes;
  for (auto* values : {graph.mutable_input(), graph.mutable_value_info(), graph.mutable_output()}) {
    for (onnx::ValueInfoProto& value : *values) {
      if (value.type().has_tensor_type() && value.type().tensor_type().has_shape()) {
        shapes.push_back(value.mutable_type()->mutable_tensor_type()->mutable_shape());
      }
    }
  }
  return shapes;
}

/// Shapes that were stored for another batch.
void forget_shapes(onnx::GraphProto& graph) {
  graph.clear_value_info();
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    if (output.type().has_tensor_type()) {
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    }
  }
}

int64_t set_batch(onnx::GraphProto& graph, std::optional<int64_t> wanted) {
  const std::vector<onnx::TensorShapeProto*> inputs = input_shapes(graph);
  if (inputs.empty()) {
    return wanted.value_or(1);
  }
  const Dimension own = inputs.front()->dim(0);
  const int64_t batch = wanted.value_or(own.has_dim_value() ? own.dim_value() : 1);
  if (own.has_dim_value() && own.dim_value() != batch) {
    forget_shapes(graph);
  }
  for (onnx::TensorShapeProto* shape : inputs) {
    Dimension& first = *shape->mutable_dim(0);
    if (!first.has_dim_value() || (own.has_dim_value() && first.dim_value() == own.dim_value())) {
      first.set_dim_value(batch);
    }
  }
  if (own.has_dim_param() && !own.dim_param().empty()) {
    for (onnx::TensorShapeProto* shape : all_shapes(graph)) {
      for (Dimension& dimension : *shape->mutable_dim()) {
        if (dimension.has_dim_param() && dimension.dim_param() == own.dim_param()) {
          dimension.set_dim_value(batch);
        }
      }
    }
  }
  return batch;
}

void infer(onnx::ModelProto& model) {
  const google::protobuf::LogSilencer silence;
  constexpr bool check_types = false, propagate_data = true;
  constexpr int keep_going = 0;  // what cannot be inferred is reported where a layer needs it
  try {
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(check_types, keep_going, propagate_data));
  } catch (const std::exception& failure) {
    throw Error(ErrorCode::parse_error, fmt::format("has shapes that contradict each other: {}", failure.what()));
  }
}

/// The output shape of a pooling node by our own rules; nothing if it is not one, or is as inferred, or needs more than
/// is known.
std::optional<std::vector<int64_t>> corrected_shape(const Graph& graph, const onnx::NodeProto& node) {
  const bool pools = node.op_type() == "MaxPool" || node.op_type() == "AveragePool";
  if (!pools || !is_onnx_domain(node.domain()) || node.input_size() < 1 || node.output_size() < 1) {
    return std::nullopt;
  }
  const auto known = [](const std::vector<int64_t>& extents) {
    return extents.size() == 4 && std::all_of(extents.begin(), extents.end(), [](int64_t e) { return e >= 0; });
  };
  const auto input = graph.partial_shape(node.input(0));
  if (!input || !known(*input)) {
    return std::nullopt;
  }
  const Window window = window_of(node, *input);
  const std::vector<int64_t> output{(*input)[0], (*input)[1], window.outputs[0], window.outputs[1]};
  return graph.partial_shape(node.output(0)) == output ? std::nullopt : std::optional(output);
}

/// States the type of a value, whatever was inferred for it.
void state(onnx::GraphProto& graph, const std::string& value, const std::vector<int64_t>& extents) {
  onnx::ValueInfoProto info;
  info.set_name(value);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : extents) {
    tensor->mutable_shape()->add_dim()->set_dim_value(extent);
  }
  *graph.add_value_info() = info;
}

/// ONNX's inference rounds ceil_mode up without dropping windows that start in the padding, and knows no dilation of
/// AveragePool. Nodes where that matters are hidden from it, their shapes stated, and the rest is inferred again.
void correct_pooling(onnx::ModelProto& model) {
  constexpr const char* hidden_domain = "kiln.hidden";
  std::vector<onnx::NodeProto*> hidden;
  std::vector<std::pair<std::string, std::vector<int64_t>>> stated;
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    const auto shape = corrected_shape(Graph(model), node);
    if (!shape) {
      continue;
    }
    hidden.push_back(&node);
    stated.emplace_back(node.output(0), *shape);
    node.set_domain(hidden_domain);
    forget_shapes(*model.mutable_graph());
    for (const auto& [value, extents] : stated) {
      state(*model.mutable_graph(), value, extents);
    }
    infer(model);
  }
  for (onnx::NodeProto* node : hidden) {
    node->clear_domain();
  }
}

}  // namespace

int64_t infer_shapes(onnx::ModelProto& model, std::optional<int64_t> batch) {
  if (batch && *batch < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the batch is {}, expected 1 or more", *batch));
  }
  const int64_t used = set_batch(*model.mutable_graph(), batch);
  infer(model);
  correct_pooling(model);
  return used;
}

}  // namespace kiln::onnx_frontend
