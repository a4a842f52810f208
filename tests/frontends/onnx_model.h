// Small ONNX models, built node by node.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace kiln::test {

using Ints = std::vector<int64_t>;
using Extent = std::variant<int64_t, std::string>;  ///< a number, or the name of a symbol; "" for an unknown one
using Value = std::variant<int64_t, float, std::string, Ints>;
using Attributes = std::vector<std::pair<std::string, Value>>;

inline constexpr int32_t floating = onnx::TensorProto::FLOAT;

/// A model of one graph.
class OnnxModel {
 public:
  explicit OnnxModel(int64_t opset = 13);

  OnnxModel& input(const std::string& name, const std::vector<Extent>& extents, int32_t type = floating);
  /// An initialiser: its elements, or each 0.5.
  OnnxModel& weights(const std::string& name, const std::vector<int64_t>& extents,
                     const std::vector<float>& values = {});
  OnnxModel& scalar(const std::string& name, float value);
  /// An initialiser of integers, of one dimension.
  OnnxModel& integers(const std::string& name, const std::vector<int64_t>& values);
  onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const Attributes& attributes = {});
  OnnxModel& output(const std::string& name);

  onnx::ModelProto& proto() { return proto_; }
  onnx::GraphProto& graph() { return *proto_.mutable_graph(); }

  std::string bytes() const { return proto_.SerializeAsString(); }

 private:
  onnx::ModelProto proto_;
};

/// A new attribute of a node, which is a graph: a branch of an If, the body of a Loop.
onnx::GraphProto& add_graph(onnx::NodeProto& node, const std::string& name);

/// The output `y` of a node over inputs of the given extents, x0, x1 and so on, and behind them constants of integers.
OnnxModel one_node(const std::string& type, const std::vector<Ints>& inputs, const Attributes& attributes = {},
                   int64_t opset = 14, int32_t element_type = floating, const std::vector<Ints>& integers = {});

/// A file in the test's temporary folder, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& contents);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kiln::test
