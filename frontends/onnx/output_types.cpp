#include "onnx/output_types.h"

#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "kiln/base/error.h"
#include "onnx/budget.h"
#include "onnx/load.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {
namespace {

using Type = onnx::TensorProto;
using Types = std::vector<std::optional<TensorType>>;

// ONNX's inference was not written for files of strangers. It gets one node at a time, no bodies, whose sizes load.h
// has checked, and no more of it than shapes are made of.
constexpr int most_operands = 64;
constexpr size_t most_elements = 1024, most_node_bytes = size_t{1} << 16;
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

std::set<std::string, std::less<>> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// Operators whose inference in ONNX's library withstood 8,000 random nodes of every version: it read nothing out of
/// bounds, divided by nothing and came to an end. That of others does not: an STFT of scalars, an LSTM of another rank
/// or a SplitToSequence into parts of 0 end the process. OnnxInference in the tests draws such nodes anew.
bool withstands_strangers(const std::string& operation) {
  static const std::set<std::string, std::less<>> operations = words_of(
      "Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization Bernoulli BitShift "
      "BlackmanWindow Cast CastLike Ceil Celu Clip Compress Concat Cos Cosh CumSum DFT DequantizeLinear Det "
      "Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp EyeLike Flatten Floor Gather "
      "GatherElements GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample "
      "HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN "
      "LRN LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization MatMul MatMulInteger Max MaxRoiPool "
      "Mean MeanVarianceNormalization MelWeightMatrix Min Mod Mul Multinomial Neg NegativeLogLikelihoodLoss "
      "NonMaxSuppression NonZero Not OneHot Or PRelu Pad Pow QLinearMatMul QuantizeLinear RandomNormal "
      "RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum "
      "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape "
      "Resize ReverseSequence RoiAlign Round Scatter ScatterElements ScatterND Selu Shape Shrink Sigmoid "
      "Sign Sin Sinh Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split Sqrt "
      "Squeeze Sub Sum Tan Tanh TfIdfVectorizer ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze "
      "Upsample Where Xor");
  return operations.contains(operation);
}

/// Whether the extents that an operator takes are of the type that the operator demands. ONNX's inference makes a
/// dimension for each element of them, of whatever type they are, and add_input() hides the number of int64 alone.
bool has_extents_of_int64(const Node& node) {
  if (node.type() != "Reshape" && node.type() != "Tile") return true;
  return !node.has(1) || node.element_type(1) == Type::INT64;
}

/// Inputs of an operator that has a window.
struct WindowOperands {
  int filter = -1;  ///< -1 where attributes say the window.
  int type_of = 0;  ///< The input whose element type the output has; -1 for int32.
  bool unpools = false, transposed = false;
};

const WindowOperands* window_operands(const std::string& operation) {
  static const std::map<std::string, WindowOperands, std::less<>> operators = {
      {"AveragePool", {}},
      {"Conv", {.filter = 1}},
      {"ConvInteger", {.filter = 1, .type_of = -1}},
      {"ConvTranspose", {.filter = 1, .transposed = true}},
      {"LpPool", {}},
      {"MaxPool", {}},
      {"MaxUnpool", {.unpools = true}},
      {"QLinearConv", {.filter = 3, .type_of = 7}},
  };
  const auto found = operators.find(operation);
  return found == operators.end() ? nullptr : &found->second;
}

/// The output of a MaxUnpool.
Extents unpooled(const Node& node) {
  const Extents& x = node.extents(0);
  if (node.has(2)) return node.list(2, "output_shape");
  Extents result{x.at(0), x.at(1)};
  const PerAxis spatial = unpooled_outputs(node.proto(), x);
  result.insert(result.end(), spatial.begin(), spatial.end());
  return result;
}

/// Outputs of an operator with a window, by the rules that read those that are covered; without extents where the ranks
/// of its operands do not fit. Throws Error or Refusal where these rules do.
TensorType type_of_windowed(const Node& node, const WindowOperands& operands) {
  node.require_inputs(std::max(operands.filter, operands.type_of) + 1, most_operands);
  TensorType result{operands.type_of < 0 ? int32_t{Type::INT32} : node.element_type(operands.type_of), {}};
  if (node.rank(0) < 3) return result;
  if (operands.unpools) {
    result.extents = unpooled(node);
    return result;
  }
  const Extents& x = node.extents(0);
  std::optional<PerAxis> kernel;
  int64_t channels = x[1];
  if (operands.filter >= 0) {
    const Extents& w = node.extents(operands.filter);
    if (w.size() != x.size()) return result;
    kernel.emplace(w.begin() + 2, w.end());
    channels = operands.transposed ? node.multiply(w[1], node.attributes().integer("group", 1)) : w[0];
  }
  const Window window =
      operands.transposed ? transposed_window_of(node.proto(), x, *kernel) : window_of(node.proto(), x, kernel);
  result.extents = {x[0], channels};
  result.extents.insert(result.extents.end(), window.outputs.begin(), window.outputs.end());
  return result;
}

bool is_recurrent(const std::string& operation) {
  return operation == "LSTM" || operation == "GRU" || operation == "RNN";
}

/// The outputs of a recurrent layer: all states, the last one and, for an LSTM, the last cell.
Types types_of_recurrent(const Node& node) {
  node.require_inputs(3, most_operands);
  const Extents &x = node.extents(0), &recurrence = node.extents(2);
  if (x.size() != 3 || recurrence.size() != 3) return {};
  const bool batch_first = node.attributes().integer("layout", 0) != 0;
  const int64_t steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1], hidden = recurrence[2];
  const int64_t directions = node.attributes().word("direction", "forward") == "bidirectional" ? 2 : 1;
  const int32_t type = node.element_type(0);
  const Extents all =
      batch_first ? Extents{batch, steps, directions, hidden} : Extents{steps, directions, batch, hidden};
  const Extents last = batch_first ? Extents{batch, directions, hidden} : Extents{directions, batch, hidden};
  return {TensorType{type, all}, TensorType{type, last}, TensorType{type, last}};
}

/// The types of the outputs by Kiln's own rules; empty for an operator without one. Throws Error or Refusal.
Types types_by_own_rules(const Node& node) {
  if (is_recurrent(node.type())) return types_of_recurrent(node);
  const WindowOperands* operands = window_operands(node.type());
  if (operands == nullptr) return {};
  const TensorType type = type_of_windowed(node, *operands);
  if (type.extents.empty()) return {};
  return {type, TensorType{Type::INT64, type.extents}};  // the second are the indices of a MaxPool
}

}  // namespace

std::vector<std::optional<TensorType>> inferred_outputs(const Node& node) {
  Types types(static_cast<size_t>(node.outputs()));
  const bool has_bodies =
      std::any_of(node.proto().attribute().begin(), node.proto().attribute().end(),
                  [](const auto& attribute) { return attribute.has_g() || attribute.graphs_size() > 0; });
  const bool is_large =
      node.inputs() > most_operands || node.outputs() > most_operands || node.proto().ByteSizeLong() > most_node_bytes;
  if (!is_onnx_domain(node.proto().domain()) || has_bodies || is_large || !node.knows_inputs()) return types;
  try {
    const Types own = types_by_own_rules(node);
    std::copy_n(own.begin(), std::min(own.size(), types.size()), types.begin());
  } catch (const Error&) {  // its attributes make no sense
  } catch (const Refusal&) {
  }
  if (!withstands_strangers(node.type()) || !has_extents_of_int64(node)) return types;
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
