#include <algorithm>
#include <map>
#include <set>

#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"
#include "onnx/fold.h"
#include "onnx/graph.h"
#include "onnx/layers.h"
#include "onnx/load.h"
#include "onnx/shapes.h"

namespace kiln {
namespace onnx_frontend {
namespace {

/// Nodes that give their input another name or another shape in the same memory.
bool is_view(const onnx::NodeProto& node) {
  static const std::set<std::string> views = {"Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze"};
  return is_onnx_domain(node.domain()) && views.contains(node.op_type());
}

/// Puts the layers together, equal ones into one.
class Listing {
 public:
  void add(Layer layer, const onnx::NodeProto& node) {
    if (!layer.refusal.empty()) {
      add_uncovered(is_onnx_domain(node.domain()) ? node.op_type() : node.domain() + "." + node.op_type(),
                    std::move(layer.refusal));
      return;
    }
    for (Request& request : layer.requests) {
      add_covered(std::move(request), name_of(node));
    }
  }

  ModelListing take() { return std::move(listing_); }

 private:
  void add_covered(Request request, std::string name) {
    const auto [place, is_new] = by_key_.try_emplace(request.key(), listing_.layers.size());
    if (is_new) {
      listing_.layers.push_back({std::move(request), 0, {}});
    }
    ModelLayer& entry = listing_.layers[place->second];
    ++entry.count;
    if (entry.nodes.empty() || entry.nodes.back() != name) {  // a node may ask for one thing several times
      entry.nodes.push_back(std::move(name));
    }
  }

  void add_uncovered(std::string operation, std::string reason) {
    const auto same = std::find_if(listing_.uncovered.begin(), listing_.uncovered.end(), [&](const Uncovered& entry) {
      return entry.operation == operation && entry.reason == reason;
    });
    if (same != listing_.uncovered.end()) {
      ++same->count;
    } else {
      listing_.uncovered.push_back({std::move(operation), 1, std::move(reason)});
    }
  }

  ModelListing listing_;
  std::map<std::string, size_t> by_key_;
};

Layer read_named(const Graph& graph, const onnx::NodeProto& node, const OnnxOptions& options) {
  try {
    return read_layer(graph, node, options);
  } catch (const Error& error) {
    if (error.message().starts_with("node ")) {
      throw;
    }
    throw Error(error.code(), describe(node) + ": " + error.message(), error.hint());
  }
}

ModelListing read(const std::string& path, const OnnxOptions& options) {
  onnx::ModelProto model = load(path);
  infer_shapes(model, options.batch);
  const Graph graph(model);
  std::vector<Reading> readings;
  for (const onnx::NodeProto& node : graph.nodes()) {
    if (graph.is_constant(node) || is_view(node)) continue;
    readings.push_back({&node, read_named(graph, node, options)});
  }
  if (options.fuse) fold(graph, readings);
  Listing listing;
  for (Reading& reading : readings) listing.add(std::move(reading.layer), *reading.node);
  return listing.take();
}

}  // namespace
}  // namespace onnx_frontend

ModelListing read_onnx(const std::string& path, const OnnxOptions& options) {
  try {
    return onnx_frontend::read(path, options);
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.message(), error.hint());
  }
}

}  // namespace kiln
