// Attributes of a node, with their types checked.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::onnx_frontend {

/// Reads attributes of one node; those left out give the fallback. Throws Error(parse_error) naming node and attribute
/// if one has another type. The node must outlive it.
class Attributes {
 public:
  explicit Attributes(const onnx::NodeProto& node) : node_(node) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t fallback) const;
  std::optional<double> real(std::string_view name) const;
  std::string word(std::string_view name, std::string_view fallback) const;
  /// Exactly `count` integers.
  std::vector<int64_t> integers(std::string_view name, size_t count, int64_t fallback) const;
  /// As many integers as there are; nothing if the attribute is left out.
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  /// As many numbers as there are; nothing if the attribute is left out.
  std::optional<std::vector<double>> reals(std::string_view name) const;
  /// As many words as there are; nothing if the attribute is left out.
  std::optional<std::vector<std::string>> words(std::string_view name) const;

 private:
  const onnx::AttributeProto* find(std::string_view name) const;
  const onnx::AttributeProto* find(std::string_view name, onnx::AttributeProto::AttributeType type) const;

  const onnx::NodeProto& node_;
};

}  // namespace kiln::onnx_frontend
