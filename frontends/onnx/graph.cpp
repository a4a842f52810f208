#include "onnx/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kiln/base/error.h"
#include "kiln/reference/convert.h"
#include "onnx/load.h"

namespace kiln::onnx_frontend {
namespace {

template <typename T>
std::optional<double> raw_element(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return static_cast<double>(value);
}

std::optional<double> half_element(const onnx::TensorProto& tensor, double (*convert)(uint16_t)) {
  if (tensor.has_raw_data()) {
    const std::optional<double> bits = raw_element<uint16_t>(tensor.raw_data());
    return bits ? std::optional(convert(static_cast<uint16_t>(*bits))) : std::nullopt;
  }
  return tensor.int32_data_size() == 1 ? std::optional(convert(static_cast<uint16_t>(tensor.int32_data(0))))
                                       : std::nullopt;
}

std::optional<double> only_element(const onnx::TensorProto& tensor) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      if (tensor.has_raw_data()) return raw_element<float>(tensor.raw_data());
      return tensor.float_data_size() == 1 ? std::optional<double>(tensor.float_data(0)) : std::nullopt;
    case onnx::TensorProto::DOUBLE:
      if (tensor.has_raw_data()) return raw_element<double>(tensor.raw_data());
      return tensor.double_data_size() == 1 ? std::optional(tensor.double_data(0)) : std::nullopt;
    case onnx::TensorProto::FLOAT16:
      return half_element(tensor, reference::from_f16);
    case onnx::TensorProto::BFLOAT16:
      return half_element(tensor, reference::from_bf16);
    default:
      return std::nullopt;
  }
}

template <typename T>
std::vector<int64_t> raw_elements(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

/// The elements of a tensor of integers as it holds them, whatever extents it claims; nothing for other types.
std::optional<std::vector<int64_t>> integers_in(const onnx::TensorProto& tensor) {
  const bool raw = tensor.has_raw_data();
  switch (tensor.data_type()) {
    case onnx::TensorProto::INT64:
      if (raw) return raw_elements<int64_t>(tensor.raw_data());
      return std::vector<int64_t>(tensor.int64_data().begin(), tensor.int64_data().end());
    case onnx::TensorProto::INT32:
      if (raw) return raw_elements<int32_t>(tensor.raw_data());
      return std::vector<int64_t>(tensor.int32_data().begin(), tensor.int32_data().end());
    case onnx::TensorProto::BOOL:
      if (raw) return raw_elements<int8_t>(tensor.raw_data());
      return std::vector<int64_t>(tensor.int32_data().begin(), tensor.int32_data().end());
    default:
      return std::nullopt;
  }
}

/// Nodes whose results differ from run to run although they have no inputs.
bool draws_randomly(const onnx::NodeProto& node) {
  return node.op_type().starts_with("Random") || node.op_type() == "Multinomial" || node.op_type() == "Bernoulli";
}

}  // namespace

std::string print_shape(const onnx::TensorShapeProto& shape) {
  std::string text;
  for (const auto& dimension : shape.dim()) {
    text += text.empty() ? "" : "x";
    text += dimension.has_dim_value()                                     ? fmt::format("{}", dimension.dim_value())
            : dimension.has_dim_param() && !dimension.dim_param().empty() ? dimension.dim_param()
                                                                          : "?";
  }
  return text;
}

int64_t count_elements(std::span<const int64_t> extents) {
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    if (__builtin_mul_overflow(elements, extent, &elements)) {
      throw Error(ErrorCode::parse_error, fmt::format("a tensor of {} has too many elements", fmt::join(extents, "x")));
    }
  }
  return elements;
}

Graph::Graph(const onnx::ModelProto& model) : graph_(model.graph()), opset_(opset_of(model)) {
  collect_shapes();
  collect_uses_of(graph_, nullptr);
  collect_constants();
}

void Graph::collect_shapes() {
  for (const auto* values : {&graph_.value_info(), &graph_.input(), &graph_.output()}) {
    for (const onnx::ValueInfoProto& value : *values) {
      if (value.type().has_tensor_type()) {
        types_.emplace(value.name(), &value.type().tensor_type());
      }
    }
  }
  for (const onnx::TensorProto& tensor : graph_.initializer()) {
    tensors_.emplace(tensor.name(), &tensor);
  }
}

/// Bodies of If and Loop, which own them, may use values of the graph around them.
void Graph::collect_uses_of(const onnx::GraphProto& body, const onnx::NodeProto* owner) {
  for (const onnx::NodeProto& node : body.node()) {
    for (const std::string& input : node.input()) {
      if (!input.empty()) uses_[input].push_back(&node);
    }
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) {
        collect_uses_of(attribute.g(), &node);
      }
      for (const onnx::GraphProto& inner : attribute.graphs()) {
        collect_uses_of(inner, &node);
      }
    }
  }
  for (const onnx::ValueInfoProto& output : body.output()) {
    uses_[output.name()].push_back(owner);
  }
}

void Graph::collect_constants() {
  for (const onnx::TensorProto& tensor : graph_.initializer()) {
    constants_.insert(tensor.name());
  }
  for (const auto& tensor : graph_.sparse_initializer()) {
    constants_.insert(tensor.values().name());
  }
  for (const onnx::NodeProto& node : graph_.node()) {
    if (!is_constant(node)) {
      continue;
    }
    constants_.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (node.op_type() == "Constant" && attribute.name() == "value" && attribute.has_t() && node.output_size() == 1) {
        tensors_.emplace(node.output(0), &attribute.t());
      }
    }
  }
}

bool Graph::is_constant(const onnx::NodeProto& node) const {
  const auto has_body = [](const onnx::AttributeProto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  };
  const auto is_left_out = [](const std::string& input) { return input.empty(); };
  if (!is_onnx_domain(node.domain()) || std::any_of(node.attribute().begin(), node.attribute().end(), has_body) ||
      draws_randomly(node)) {
    return false;
  }
  if (std::all_of(node.input().begin(), node.input().end(), is_left_out)) {
    return node.op_type() == "Constant";
  }
  return std::all_of(node.input().begin(), node.input().end(),
                     [&](const std::string& input) { return is_left_out(input) || is_constant(input); });
}

std::optional<double> Graph::scalar(const std::string& value) const {
  const auto tensor = tensors_.find(value);
  return tensor == tensors_.end() ? std::nullopt : only_element(*tensor->second);
}

std::optional<std::vector<int64_t>> Graph::integers(const std::string& value) const {
  const auto tensor = tensors_.find(value);
  const std::optional<std::vector<int64_t>> shape = partial_shape(value);
  if (tensor == tensors_.end() || std::count(shape->begin(), shape->end(), -1) > 0) return std::nullopt;
  std::optional<std::vector<int64_t>> values = integers_in(*tensor->second);
  return values && std::ssize(*values) == count_elements(*shape) ? values : std::nullopt;
}

std::optional<std::vector<int64_t>> Graph::partial_shape(const std::string& value) const {
  constexpr int64_t unknown = -1;
  constexpr int64_t largest_extent = std::numeric_limits<int32_t>::max();  // what windows are computed with
  std::vector<int64_t> extents;
  const auto type = types_.find(value);
  if (const auto tensor = tensors_.find(value); tensor != tensors_.end()) {
    extents.assign(tensor->second->dims().begin(), tensor->second->dims().end());
  } else if (type == types_.end() || !type->second->has_shape()) {
    return std::nullopt;
  } else {
    for (const auto& dimension : type->second->shape().dim()) {
      extents.push_back(dimension.has_dim_value() ? dimension.dim_value() : unknown);
    }
  }
  for (int64_t& extent : extents) {
    extent = extent < 0 || extent > largest_extent ? unknown : extent;
  }
  return extents;
}

std::vector<int64_t> Graph::shape(const onnx::NodeProto& node, const std::string& value) const {
  const std::optional<std::vector<int64_t>> extents = partial_shape(value);
  if (extents && std::all_of(extents->begin(), extents->end(), [](int64_t extent) { return extent >= 0; })) {
    return *extents;
  }
  const auto type = types_.find(value);
  const std::string known = !extents               ? "nothing says its shape"
                            : type == types_.end() ? "an extent is negative or beyond 2^31 - 1"
                                                   : "its shape is " + print_shape(type->second->shape());
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: the extents of '{}' are not all known: {}", describe(node), value, known),
              "export the model with fixed sizes; only the batch can be set here");
}

int32_t Graph::element_type(const std::string& value) const {
  if (const auto tensor = tensors_.find(value); tensor != tensors_.end()) {
    return tensor->second->data_type();
  }
  const auto type = types_.find(value);
  return type == types_.end() ? 0 : type->second->elem_type();
}

bool Graph::feeds_nodes(const std::string& value) const {
  const auto users = uses_.find(value);
  return users != uses_.end() &&
         std::count(users->second.begin(), users->second.end(), nullptr) < std::ssize(users->second);
}

const onnx::NodeProto* Graph::sole_user(const std::string& value) const {
  const auto users = uses_.find(value);
  return users == uses_.end() || users->second.size() != 1 ? nullptr : users->second.front();
}

}  // namespace kiln::onnx_frontend
