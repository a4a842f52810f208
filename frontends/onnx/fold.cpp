#include "onnx/fold.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"
#include "onnx/attributes.h"
#include "onnx/load.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// The other operand of a node with two.
const std::string& other_input(const onnx::NodeProto& node, const std::string& value) {
  return node.input(0) == value ? node.input(1) : node.input(0);
}

bool all_constant(const Graph& graph, const onnx::NodeProto& node, int first) {
  return std::all_of(node.input().begin() + std::min(first, node.input_size()), node.input().end(),
                     [&](const std::string& input) { return input.empty() || graph.is_constant(input); });
}

bool is_normalisation(const Request& request) {
  return request.operation == "norm_forward" || request.operation == "norm_inference";
}

/// Convolutions, transposed ones too, and products with a matrix on the right: their weights can be scaled by channel,
/// and shifted by a bias.
bool has_channels(const Request& request) {
  return request.operation == "conv_forward" || request.operation == "conv_backward_data" ||
         request.operation == "gemm";
}

/// The dimension of a result of those extents that a bias has its elements for; nothing if there is none.
std::optional<size_t> channel_dimension(const Request& request, const Extents& extents) {
  if (!has_channels(request) || extents.empty()) return std::nullopt;
  const size_t dimension = request.operation == "gemm" ? extents.size() - 1 : 1;
  const int64_t channels = result_of(request).spec.extents[channel_dimension_of(request)];
  return extents[dimension] == channels ? std::optional(dimension) : std::nullopt;
}

/// Whether `value` is a constant that has one number for each element of that dimension of a result.
bool is_per_channel(const Graph& graph, const std::string& value, const Extents& extents, size_t dimension) {
  const auto own = graph.partial_shape(value);
  if (!graph.is_constant(value) || !own || own->size() > extents.size() || own->size() + dimension < extents.size()) {
    return false;
  }
  Extents expected(extents.size(), 1);
  expected[dimension] = extents[dimension];
  return std::equal(own->rbegin(), own->rend(), expected.rbegin());
}

/// One layer that takes in what follows it.
class Folding {
 public:
  /// `readings`: of all nodes, the host among them.
  Folding(const Graph& graph, const std::vector<Reading>& readings, Reading& host)
      : graph_(graph), readings_(readings), node_(*host.node), request_(host.layer.requests.front()) {}

  void run(std::set<const onnx::NodeProto*>& taken) {
    std::string value = node_.output(0);
    while (const onnx::NodeProto* node = graph_.sole_user(value)) {
      if (taken.contains(node) || !is_onnx_domain(node->domain()) || node->output_size() < 1) break;
      if (!take(*node, value) && !take_activation(*node)) break;
      taken.insert(node);
      value = node->output(0);
    }
    request_ = finished(std::move(request_));
  }

 private:
  bool before(EpilogueStage stage) const {
    return std::all_of(request_.epilogue.begin(), request_.epilogue.end(), [&](EpilogueStage s) { return s < stage; });
  }

  bool take(const onnx::NodeProto& node, const std::string& value) {
    const std::string& type = node.op_type();
    if (type == "BatchNormalization") return take_batch_norm(node, value);
    if (type == "Add" && node.input_size() == 2) return take_add(node, value);
    if (type == "Relu") return append(EpilogueStage::relu);
    if (type == "Clip" && node.input(0) == value) {
      const std::optional<EpilogueStage> stage = clip_stage(graph_, node);
      return stage && append(*stage);
    }
    return false;
  }

  /// Scales and shifts channels by constants, of which the scales go into weights that are constant themselves.
  bool take_batch_norm(const onnx::NodeProto& node, const std::string& value) {
    const auto extents = graph_.partial_shape(value);
    return extents && channel_dimension(request_, *extents) == 1 && !trains(graph_, node) && node.input(0) == value &&
           all_constant(graph_, node, 1) && all_constant(graph_, node_, 1) && take_bias();
  }

  bool take_add(const onnx::NodeProto& node, const std::string& value) {
    const std::string& other = other_input(node, value);
    const auto extents = graph_.partial_shape(value);
    if (!extents || extents->empty() || std::count(extents->begin(), extents->end(), -1) > 0) return false;
    const std::optional<size_t> channel = channel_dimension(request_, *extents);
    if (channel && is_per_channel(graph_, other, *extents, *channel)) {
      return all_constant(graph_, node_, 2) && take_bias();
    }
    return graph_.partial_shape(other) == extents && !gives_statistics_to_nodes() && append(EpilogueStage::add);
  }

  /// A residual might be computed from them, and would be needed before they are there.
  bool gives_statistics_to_nodes() const {
    return std::any_of(node_.output().begin() + 1, node_.output().end(),
                       [&](const std::string& output) { return graph_.feeds_nodes(output); });
  }

  /// Constants that add up with the bias there is: it must be the last stage so far.
  bool take_bias() {
    return before(EpilogueStage::add) && (request_.has(EpilogueStage::bias) || append(EpilogueStage::bias));
  }

  /// Stages stand in the order of EpilogueStage, each at most once.
  bool append(EpilogueStage stage) {
    const bool permitted = !is_normalisation(request_) || stage == EpilogueStage::add || stage == EpilogueStage::relu;
    if (!permitted || !before(stage) || fused_activation_of(request_) != ActivationMode::identity) return false;
    request_.epilogue.push_back(stage);
    return true;
  }

  /// Any activation that is one request by itself, behind a normalisation that ends in none yet.
  bool take_activation(const onnx::NodeProto& node) {
    if (!is_normalisation(request_) || request_.has(EpilogueStage::relu)) return false;
    if (fused_activation_of(request_) != ActivationMode::identity) return false;
    const auto reading =
        std::find_if(readings_.begin(), readings_.end(), [&](const Reading& other) { return other.node == &node; });
    if (reading == readings_.end() || reading->layer.requests.size() != 1) return false;
    const Request& alone = reading->layer.requests.front();
    if (alone.operation != "activation_forward") return false;
    for (Attribute& attribute : request_.attributes) {
      if (attribute.name == "activation") attribute.value = alone.word("mode");
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<Reading>& readings_;
  const onnx::NodeProto& node_;
  Request& request_;
};

}  // namespace

std::optional<EpilogueStage> clip_stage(const Graph& graph, const onnx::NodeProto& node) {
  constexpr int64_t first_with_inputs = 11;
  std::optional<double> low, high;
  if (graph.opset() < first_with_inputs) {
    low = Attributes(node).real("min");
    high = Attributes(node).real("max");
  } else {
    if (!all_constant(graph, node, 1)) {
      return std::nullopt;
    }
    const auto given = [&](int i) { return node.input_size() > i && !node.input(i).empty(); };
    if (given(1)) low = graph.scalar(node.input(1));
    if (given(2)) high = graph.scalar(node.input(2));
    if ((given(1) && !low) || (given(2) && !high)) {
      return EpilogueStage::clip;  // constant, but computed: its value is not at hand
    }
  }
  constexpr float largest = 3.4028235e38F;  // what opset 6 means by a bound that is left out
  const bool open_above = !high || *high >= largest;
  return low == 0.0 && open_above ? EpilogueStage::relu : EpilogueStage::clip;
}

/// The last one chooses first: of two whose results are added, it runs later. Normalisations choose after the others,
/// which may take them in.
void fold(const Graph& graph, std::vector<Reading>& readings) {
  std::set<const onnx::NodeProto*> taken;
  for (const auto hosts : {has_channels, is_normalisation}) {
    for (auto reading = readings.rbegin(); reading != readings.rend(); ++reading) {
      const std::vector<Request>& requests = reading->layer.requests;
      if (requests.empty() || !hosts(requests.front()) || taken.contains(reading->node)) continue;
      Folding(graph, readings, *reading).run(taken);
    }
  }
  std::erase_if(readings, [&](const Reading& reading) { return taken.contains(reading.node); });
}

}  // namespace kiln::onnx_frontend
