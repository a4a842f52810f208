// From a file to a model that has been checked as far as the rest of the reader relies on it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace kiln::onnx_frontend {

/// Parses the file and checks versions, and that every value is defined once, before it is used. Throws Error as
/// read_onnx() does, without the path.
onnx::ModelProto load(const std::string& path);

/// The opset of ONNX's own domain; the newest that Kiln reads for a model that uses none of its operations and names
/// none.
int64_t opset_of(const onnx::ModelProto& model);

/// Whether `domain` is ONNX's own.
bool is_onnx_domain(const std::string& domain);

/// How messages name a node: `node 'conv1' (Conv)`, or by its first output where it has no name.
std::string describe(const onnx::NodeProto& node);
/// The node's name, or that of its first output.
std::string name_of(const onnx::NodeProto& node);

}  // namespace kiln::onnx_frontend
