// Graphs from ONNX models.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/frontends/onnx_inputs.h"
#include "kiln/graph/graph.h"

namespace onnx {
class ModelProto;
}

namespace kiln {

/// How a model is read.
struct OnnxOptions {
  /// Storage of floating-point numbers; without it, as the model has them (double as f32).
  std::optional<DType> dtype = std::nullopt;
  /// The batch: the first extent of inputs where the model leaves it open or all have the same; without it, the model's
  /// own, and 1 where it is open.
  std::optional<int64_t> batch = std::nullopt;
  /// Extents of inputs by their names, for those that the model leaves open (OnnxInputs::resolve()).
  std::map<std::string, graph::Extents> shapes = {};
};

/// A node that no call serves, and why.
struct UncoveredNode {
  std::string name;       ///< Name of its first output where it has none.
  std::string operation;  ///< With its domain if that is not ONNX's own.
  std::string reason;
};

/// Type of a value of a model, for its callers.
struct OnnxPort {
  std::string name;
  std::string type;  ///< "float", "int64", "bool", ...: as ONNX writes it. The graph's value says how it is stored.
};

struct OnnxGraph {
  graph::Graph graph;
  std::vector<OnnxPort> inputs, outputs;  ///< As the graph's, in that order.
  std::vector<std::string> files;         ///< Files that it was read from: the model, and its data beside it.
  int64_t stored_bytes = 0;               ///< Bytes of constants whose elements the files hold.
  /// With any, the graph cannot run: it holds the other nodes. An uncovered node's outputs are inputs of the graph,
  /// where their types and extents are known (nodes behind other such values are uncovered too). Its inputs are outputs
  /// of the graph.
  std::vector<UncoveredNode> uncovered;
};

/// A model's file, parsed and checked. Opsets 7 to current, weights inside the file or beside it. Shapes, and what is
/// computed from them, are computed here; docs/onnx.md lists the nodes that are covered. Integers of 16, 32 and 64 bits
/// are stored as i32, booleans as u8.
///
/// Throws Error(io_error) if a file cannot be read; Error(parse_error) if it is not ONNX, or a node misuses its
/// operation; Error(unsupported) for an opset outside of those. Messages start with the path and name the node.
class OnnxFile {
 public:
  explicit OnnxFile(std::string path);

  const std::string& path() const { return path_; }
  /// The inputs as the file declares them. `dtype`: as of OnnxOptions.
  OnnxInputs inputs(std::optional<DType> dtype = std::nullopt) const;
  /// The graph for inputs of some extents. Throws Error(invalid_argument) as OnnxInputs::resolve(). Thread-safe.
  OnnxGraph read(const OnnxOptions& options = {}) const;

 private:
  std::string path_;
  std::shared_ptr<const onnx::ModelProto> model_;
};

/// OnnxFile(path).read(options).
OnnxGraph read_onnx(const std::string& path, const OnnxOptions& options = {});

}  // namespace kiln
