// A model's graph with what the reader asks of it: shapes, uses, constants.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace kiln::onnx_frontend {

/// An index over a model whose shapes have been inferred. The model must outlive it.
class Graph {
 public:
  explicit Graph(const onnx::ModelProto& model);

  int64_t opset() const { return opset_; }
  const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes() const { return graph_.node(); }

  /// The extents of a value, if its rank is known; unknown extents, and those outside 0 to 2^31 - 1, are -1.
  std::optional<std::vector<int64_t>> partial_shape(const std::string& value) const;
  /// The extents of `node`'s input; throws Error(invalid_argument) naming what is unknown.
  std::vector<int64_t> shape(const onnx::NodeProto& node, const std::string& value) const;
  /// The element type of a value as ONNX numbers it; 0 if unknown.
  int32_t element_type(const std::string& value) const;

  /// The node that alone uses `value`, once, where the value is no output of the model; otherwise null.
  const onnx::NodeProto* sole_user(const std::string& value) const;
  bool is_used(const std::string& value) const { return uses_.contains(value); }
  /// Whether other values are computed from `value`: it is more than an output of the model.
  bool feeds_nodes(const std::string& value) const;

  /// Whether nothing a caller passes in changes the value.
  bool is_constant(const std::string& value) const { return constants_.contains(value); }
  bool is_constant(const onnx::NodeProto& node) const;
  /// The one element of a constant that stands in the file as such.
  std::optional<double> scalar(const std::string& value) const;
  /// The elements of a constant of integers or booleans that stands in the file as such.
  std::optional<std::vector<int64_t>> integers(const std::string& value) const;

 private:
  void collect_shapes();
  void collect_uses_of(const onnx::GraphProto& body, const onnx::NodeProto* owner);
  void collect_constants();

  const onnx::GraphProto& graph_;
  int64_t opset_;
  std::map<std::string, const onnx::TypeProto::Tensor*> types_;
  std::map<std::string, const onnx::TensorProto*> tensors_;
  std::map<std::string, std::vector<const onnx::NodeProto*>> uses_;  // null stands for an output of the model
  std::set<std::string> constants_;
};

/// The product of extents of 0 and more; throws Error(parse_error) beyond 64 bits.
int64_t count_elements(std::span<const int64_t> extents);

/// `1x3xHx?`, for messages.
std::string print_shape(const onnx::TensorShapeProto& shape);

}  // namespace kiln::onnx_frontend
