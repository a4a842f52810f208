#include "onnx/load.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "onnx/message_count.h"

namespace kiln::onnx_frontend {
namespace {

constexpr int64_t oldest_opset = 7, newest_opset = 25;
constexpr size_t most_messages = size_t{1} << 22;                       // some 50 of each node that is read
constexpr std::uintmax_t most_message_bytes = std::uintmax_t{1} << 31;  // protobuf's own limit of a message

onnx::ModelProto parse(const std::string& path) {
  std::error_code failure;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
  if (failure) {
    throw Error(ErrorCode::io_error, fmt::format("cannot be read: {}", failure.message()));
  }
  if (bytes >= most_message_bytes) {
    throw Error(ErrorCode::unsupported, fmt::format("has {} bytes, and ONNX files have less than 2^31", bytes),
                "export the model with external data");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorCode::io_error, fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  if (count_messages(path, most_messages) > most_messages) {
    throw Error(ErrorCode::unsupported,
                fmt::format("holds more than {} nodes, attributes, names and the like", most_messages),
                "split it into several models");
  }
  const google::protobuf::LogSilencer silence;
  onnx::ModelProto model;
  if (bytes == 0 || !model.ParseFromIstream(&file)) {
    throw Error(ErrorCode::parse_error, fmt::format("is not an ONNX model, or is cut short ({} bytes)", bytes),
                "export it again, or fetch it with Git LFS if it is a pointer file");
  }
  return model;
}

// The opset of ONNX's own domain, if the model names one.
std::optional<int64_t> named_opset(const onnx::ModelProto& model) {
  const auto& imports = model.opset_import();
  const auto found =
      std::find_if(imports.begin(), imports.end(), [](const auto& opset) { return is_onnx_domain(opset.domain()); });
  return found == imports.end() ? std::nullopt : std::optional(found->version());
}

bool uses_onnx(const onnx::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(), [](const onnx::NodeProto& node) {
    const auto& attributes = node.attribute();
    return is_onnx_domain(node.domain()) ||
           std::any_of(attributes.begin(), attributes.end(), [](const onnx::AttributeProto& attribute) {
             return uses_onnx(attribute.g()) ||
                    std::any_of(attribute.graphs().begin(), attribute.graphs().end(), uses_onnx);
           });
  });
}

void check_versions(const onnx::ModelProto& model) {
  if (!model.has_ir_version() || !model.has_graph() || model.opset_import().empty()) {
    throw Error(ErrorCode::parse_error, "is not an ONNX model: it lacks a graph, an IR version or an opset");
  }
  if (!named_opset(model) && uses_onnx(model.graph())) {
    throw Error(ErrorCode::parse_error, "does not say which opset of ONNX's own operations it uses");
  }
  const int64_t opset = opset_of(model);
  if (opset < oldest_opset || opset > newest_opset) {
    throw Error(ErrorCode::unsupported,
                fmt::format("uses opset {}, expected {} to {}", opset, oldest_opset, newest_opset),
                "convert it with onnx.version_converter, or export it with another opset_version");
  }
  if (model.graph().node().empty()) {
    throw Error(ErrorCode::parse_error, "holds no nodes");
  }
}

/// ONNX demands single assignment and topological order, which also rules cycles out.
void check_order(const onnx::GraphProto& graph) {
  std::set<std::string> known, produced;
  for (const auto& node : graph.node()) {
    produced.insert(node.output().begin(), node.output().end());
  }
  for (const auto& input : graph.input()) {
    known.insert(input.name());
  }
  std::set<std::string> initial;
  const auto add_initial = [&](const std::string& name) {
    if (!initial.insert(name).second) {
      throw Error(ErrorCode::parse_error, fmt::format("has two initializers '{}'", printable_name(name)));
    }
    known.insert(name);
  };
  for (const auto& initializer : graph.initializer()) {
    add_initial(initializer.name());
  }
  for (const auto& initializer : graph.sparse_initializer()) {
    add_initial(initializer.values().name());
  }
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (input.empty() || known.contains(input)) {
        continue;
      }
      if (produced.contains(input)) {
        throw Error(
            ErrorCode::parse_error,
            fmt::format("{} uses '{}' before it is computed: the graph has a cycle, or its nodes are not in order",
                        describe(node), printable_name(input)));
      }
      throw Error(ErrorCode::parse_error,
                  fmt::format("{} uses '{}', which nothing defines", describe(node), printable_name(input)));
    }
    for (const std::string& output : node.output()) {
      if (!output.empty() && !known.insert(output).second) {
        throw Error(ErrorCode::parse_error,
                    fmt::format("{} defines '{}' a second time", describe(node), printable_name(output)));
      }
    }
  }
}

/// Bytes of an element as raw data holds it; 0 for strings and types that are not known.
size_t element_bytes(int32_t type) {
  switch (type) {
    case onnx::TensorProto::BOOL:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
      return 1;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
      return 2;
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32:
      return 4;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64:
    case onnx::TensorProto::COMPLEX64:
      return 8;
    case onnx::TensorProto::COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

// ONNX's shape inference of single nodes (output_types.h) trusts what it reads: it divides by strides and copies raw
// data without looking. The checks below stand between it and a damaged file.

void check_tensor(const onnx::TensorProto& tensor, const std::string& owner) {
  const size_t element = element_bytes(tensor.data_type());
  const bool broken = tensor.has_raw_data() && element != 0 && tensor.raw_data().size() % element != 0;
  if (broken) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: {} bytes of data are not a whole number of {}-byte elements",
                                                    owner, tensor.raw_data().size(), element));
  }
}

void check_size(const onnx::NodeProto& node, const onnx::AttributeProto& attribute) {
  static const std::set<std::string> sizes = {"strides", "dilations", "kernel_shape",
                                              "group",   "blocksize", "num_outputs"};
  constexpr int64_t largest = std::numeric_limits<int32_t>::max();
  if (!sizes.contains(attribute.name())) {
    return;
  }
  std::vector<int64_t> values(attribute.ints().begin(), attribute.ints().end());
  if (attribute.has_i()) {
    values.push_back(attribute.i());
  }
  const auto wrong = std::find_if(values.begin(), values.end(), [](int64_t v) { return v < 1 || v > largest; });
  if (wrong != values.end()) {
    throw Error(ErrorCode::parse_error,
                fmt::format("{}: {} holds {}, expected 1 to {}", describe(node), attribute.name(), *wrong, largest));
  }
}

void check_bodies(const onnx::NodeProto& node) {
  static const std::map<std::string, std::vector<std::string>> bodies = {
      {"If", {"then_branch", "else_branch"}}, {"Loop", {"body"}}, {"Scan", {"body"}}};
  const auto needed = bodies.find(node.op_type());
  if (!is_onnx_domain(node.domain()) || needed == bodies.end()) {
    return;
  }
  for (const std::string& name : needed->second) {
    const bool found = std::any_of(node.attribute().begin(), node.attribute().end(), [&](const auto& attribute) {
      return attribute.name() == name && attribute.type() == onnx::AttributeProto::GRAPH && attribute.has_g();
    });
    if (!found) {
      throw Error(ErrorCode::parse_error,
                  fmt::format("{}: attribute {} is missing, or no graph", describe(node), name));
    }
  }
}

void check_contents(const onnx::GraphProto& graph) {
  for (const auto& tensor : graph.initializer()) {
    check_tensor(tensor, fmt::format("initializer '{}'", printable_name(tensor.name())));
  }
  for (const auto& node : graph.node()) {
    check_bodies(node);
    for (const auto& attribute : node.attribute()) {
      check_size(node, attribute);
      if (attribute.has_t()) {
        check_tensor(attribute.t(), describe(node));
      }
      if (attribute.has_g()) {
        check_contents(attribute.g());
      }
      for (const auto& body : attribute.graphs()) {
        check_contents(body);
      }
    }
  }
}

}  // namespace

bool is_onnx_domain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

int64_t opset_of(const onnx::ModelProto& model) {
  return named_opset(model).value_or(newest_opset);
}

std::string name_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) {
    return node.name();
  }
  return node.output().empty() ? std::string() : node.output(0);
}

std::string describe(const onnx::NodeProto& node) {
  return fmt::format("node '{}' ({})", printable_name(name_of(node)), printable_name(node.op_type()));
}

onnx::ModelProto load(const std::string& path) {
  onnx::ModelProto model = parse(path);
  check_versions(model);
  check_order(model.graph());
  check_contents(model.graph());
  return model;
}

}  // namespace kiln::onnx_frontend
