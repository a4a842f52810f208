#include "onnx/shapes.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "kiln/base/error.h"
#include "onnx/graph.h"
#include "onnx/load.h"
#include "onnx/readers.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;
using Extents = std::vector<int64_t>;

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

/// Contents of small integer tensors that shapes are made of, by name.
using Propagated = std::unordered_map<std::string, onnx::TensorShapeProto>;

/// A domain whose nodes ONNX's inference passes over.
constexpr const char* hidden_domain = "kiln.hidden";

void know_hidden_domain(onnx::ModelProto& model) {
  const auto& imports = model.opset_import();
  const bool is_known =
      std::any_of(imports.begin(), imports.end(), [](const auto& import) { return import.domain() == hidden_domain; });
  if (is_known) return;
  auto& import = *model.add_opset_import();
  import.set_domain(hidden_domain);
  import.set_version(1);
}

/// ONNX's inference reads the types of a MaxUnpool's inputs without looking whether there are any, and dies of one that
/// a node in front of it makes wrongly. It does not see such nodes, in bodies of others neither; their extents are
/// ours.
void hide_unpools(onnx::GraphProto& graph, std::vector<onnx::NodeProto*>& hidden) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) hide_unpools(*attribute.mutable_g(), hidden);
      for (onnx::GraphProto& body : *attribute.mutable_graphs()) hide_unpools(body, hidden);
    }
    if (node.op_type() != "MaxUnpool" || !is_onnx_domain(node.domain())) continue;
    node.set_domain(hidden_domain);
    hidden.push_back(&node);
  }
}

Propagated infer(onnx::ModelProto& model) {
  std::vector<onnx::NodeProto*> unpools;
  hide_unpools(*model.mutable_graph(), unpools);
  if (!unpools.empty()) know_hidden_domain(model);
  const google::protobuf::LogSilencer silence;
  constexpr bool check_types = false, propagate_data = true;
  constexpr int keep_going = 0;  // what cannot be inferred is reported where a layer needs it
  Propagated propagated;
  try {
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(check_types, keep_going, propagate_data),
                                       &propagated);
  } catch (const std::exception& failure) {
    throw Error(ErrorCode::parse_error, fmt::format("its shapes cannot be inferred: {}", failure.what()));
  }
  for (onnx::NodeProto* node : unpools) node->clear_domain();
  return propagated;
}

bool all_known(const std::optional<Extents>& extents) {
  return extents && std::all_of(extents->begin(), extents->end(), [](int64_t extent) { return extent >= 0; });
}

/// By our own rules: ONNX's inference counts windows of ceil_mode that start in the padding, and knows no dilation of
/// AveragePool.
std::optional<Extents> pooled_shape(const Graph& graph, const onnx::NodeProto& node) {
  const auto input = graph.partial_shape(node.input(0));
  if (!all_known(input) || input->size() != 4) {
    return std::nullopt;
  }
  const Window window = window_of(node, *input);
  Extents output{(*input)[0], (*input)[1]};
  output.insert(output.end(), window.outputs.begin(), window.outputs.end());
  return output;
}

/// ONNX's inference reads the target of Reshape from an initialiser only, not from what Shape, Gather and Concat give.
std::optional<Extents> reshaped_shape(const Graph& graph, const onnx::NodeProto& node, const Propagated& propagated) {
  const auto input = graph.partial_shape(node.input(0));
  const auto target = node.input_size() < 2 ? propagated.end() : propagated.find(node.input(1));
  if (!all_known(input) || target == propagated.end() || all_known(graph.partial_shape(node.output(0)))) {
    return std::nullopt;
  }
  Extents output;
  std::optional<size_t> open;
  int64_t rest = count_elements(*input);
  for (const Dimension& dimension : target->second.dim()) {
    const size_t d = output.size();
    int64_t extent = dimension.has_dim_value() ? dimension.dim_value() : -2;
    extent = extent == 0 && d < input->size() ? (*input)[d] : extent;
    if (extent < -1 || extent == 0 || (extent == -1 && open)) {
      return std::nullopt;
    }
    open = extent == -1 ? d : open;
    rest /= extent == -1 ? 1 : extent;
    output.push_back(extent);
  }
  if (open) {
    output[*open] = rest;
  }
  return output;
}

/// Of nodes that ONNX's inference does not know in every opset that we read: it misses axes that are an input since
/// opset 18, and nodes that came later than it.
std::optional<Extents> later_shape(const Graph& graph, const onnx::NodeProto& node) {
  static const std::set<std::string> shaped_like_input = {"Gelu", "GroupNormalization", "HardSwish", "Mish"};
  constexpr int64_t first_with_axes = 18;
  auto input = graph.partial_shape(node.input(0));
  if (!all_known(input)) return std::nullopt;
  if (shaped_like_input.contains(node.op_type())) return input;
  if (!node.op_type().starts_with("Reduce") || graph.opset() < first_with_axes) return std::nullopt;
  static const OnnxOptions options;
  return reduced_shape({graph, node, options});
}

/// Of a MaxUnpool: what its third input says, or what its windows cover.
std::optional<Extents> unpooled_shape(const Graph& graph, const onnx::NodeProto& node) {
  if (node.input_size() > 2 && !node.input(2).empty()) return graph.integers(node.input(2));
  const auto input = graph.partial_shape(node.input(0));
  if (!all_known(input) || input->size() < 3) return std::nullopt;
  Extents output{(*input)[0], (*input)[1]};
  const std::vector<int64_t> spatial = unpooled_outputs(node, *input);
  output.insert(output.end(), spatial.begin(), spatial.end());
  return all_known(output) ? std::optional(output) : std::nullopt;
}

/// The shape of the node's output where ours is better than the one inferred.
std::optional<Extents> corrected_shape(const Graph& graph, const onnx::NodeProto& node, const Propagated& propagated) {
  if (!is_onnx_domain(node.domain()) || node.input_size() < 1 || node.output_size() < 1) {
    return std::nullopt;
  }
  std::optional<Extents> ours;
  if (node.op_type() == "MaxPool" || node.op_type() == "AveragePool") {
    ours = pooled_shape(graph, node);
  } else if (node.op_type() == "Reshape") {
    ours = reshaped_shape(graph, node, propagated);
  } else if (node.op_type() == "MaxUnpool") {
    ours = unpooled_shape(graph, node);
  } else {
    ours = later_shape(graph, node);
  }
  return graph.partial_shape(node.output(0)) == ours ? std::nullopt : ours;
}

/// States the shape of a value, whatever was inferred for it. Of outputs of the model ONNX's inference reads no other.
void state(onnx::GraphProto& graph, const std::string& value, const Extents& extents, int32_t element_type) {
  auto& outputs = *graph.mutable_output();
  const auto output = std::find_if(outputs.begin(), outputs.end(),
                                   [&](const onnx::ValueInfoProto& candidate) { return candidate.name() == value; });
  onnx::ValueInfoProto& info = output != outputs.end() ? *output : *graph.add_value_info();
  info.set_name(value);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(element_type);
  tensor.mutable_shape();
  for (const int64_t extent : extents) {
    tensor.mutable_shape()->add_dim()->set_dim_value(extent);
  }
}

/// Infers shapes. Nodes whose shapes we know better are hidden from ONNX's inference in a domain it does not know,
/// their shapes stated, and the rest inferred again.
class Inference {
 public:
  explicit Inference(onnx::ModelProto& model) : model_(model), propagated_(infer(model)) {}

  void run() {
    auto& nodes = *model_.mutable_graph()->mutable_node();
    for (int i = 0; i < nodes.size(); ++i) {
      const Graph graph(model_);  // of the shapes known so far; kept while nothing changes
      std::optional<Extents> shape;
      while (i < nodes.size() && !(shape = corrected_shape(graph, nodes[i], propagated_))) {
        ++i;
      }
      if (shape) {
        hide(nodes[i], *shape, graph.element_type(nodes[i].input(0)));
      }
    }
    for (onnx::NodeProto* node : hidden_) {
      node->clear_domain();
    }
  }

 private:
  struct Stated {
    std::string value;
    Extents extents;
    int32_t element_type;
  };

  void hide(onnx::NodeProto& node, const Extents& shape, int32_t element_type) {
    know_hidden_domain(model_);
    node.set_domain(hidden_domain);
    hidden_.push_back(&node);
    stated_.push_back({node.output(0), shape, element_type});
    forget_shapes(*model_.mutable_graph());
    for (const Stated& entry : stated_) {
      state(*model_.mutable_graph(), entry.value, entry.extents, entry.element_type);
    }
    propagated_ = infer(model_);
  }

  onnx::ModelProto& model_;
  Propagated propagated_;
  std::vector<onnx::NodeProto*> hidden_;
  std::vector<Stated> stated_;
};

}  // namespace

int64_t infer_shapes(onnx::ModelProto& model, std::optional<int64_t> batch) {
  if (batch && *batch < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the batch is {}, expected 1 or more", *batch));
  }
  const int64_t used = set_batch(*model.mutable_graph(), batch);
  Inference(model).run();
  return used;
}

}  // namespace kiln::onnx_frontend
