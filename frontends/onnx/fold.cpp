#include "onnx/fold.h"

#include <algorithm>
#include <optional>

#include "onnx/attributes.h"
#include "onnx/load.h"

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

/// Whether the node scales and shifts channels by constants: inference, and none of the training outputs.
bool normalises_by_constants(const Graph& graph, const onnx::NodeProto& node, const std::string& value) {
  const bool trains = Attributes(node).integer("training_mode", 0) != 0;
  const bool only_output = std::none_of(node.output().begin() + 1, node.output().end(),
                                        [&](const std::string& output) { return graph.is_used(output); });
  return !trains && only_output && node.input_size() == 5 && node.input(0) == value && all_constant(graph, node, 1);
}

/// Whether `value` is a constant K x 1 x 1 or 1 x K x 1 x 1: one number for each of K channels.
bool is_per_channel(const Graph& graph, const std::string& value, int64_t channels) {
  auto extents = graph.partial_shape(value);
  if (!graph.is_constant(value) || !extents) {
    return false;
  }
  if (extents->size() == 4 && extents->front() == 1) {
    extents->erase(extents->begin());
  }
  return *extents == std::vector<int64_t>{channels, 1, 1};
}

class Folding {
 public:
  Folding(const Graph& graph, const onnx::NodeProto& conv) : graph_(graph), conv_(conv), result_(unfolded(conv)) {}

  Folded run(const std::set<const onnx::NodeProto*>& taken) {
    std::string value = conv_.output(0);
    while (const onnx::NodeProto* node = graph_.sole_user(value)) {
      if (taken.contains(node) || !is_onnx_domain(node->domain()) || node->output_size() < 1 || !take(*node, value)) {
        break;
      }
      result_.nodes.push_back(node);
      value = node->output(0);
    }
    return result_;
  }

 private:
  bool has(EpilogueStage stage) const {
    return std::find(result_.epilogue.begin(), result_.epilogue.end(), stage) != result_.epilogue.end();
  }
  bool before(EpilogueStage stage) const {
    return std::all_of(result_.epilogue.begin(), result_.epilogue.end(), [&](EpilogueStage s) { return s < stage; });
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

  bool take_batch_norm(const onnx::NodeProto& node, const std::string& value) {
    return normalises_by_constants(graph_, node, value) && all_constant(graph_, conv_, 1) && take_bias();
  }

  bool take_add(const onnx::NodeProto& node, const std::string& value) {
    const std::string& other = other_input(node, value);
    const auto extents = graph_.partial_shape(value);
    if (!extents || extents->size() != 4) {
      return false;
    }
    if (is_per_channel(graph_, other, (*extents)[1])) {
      const bool own_is_constant = conv_.input_size() < 3 || graph_.is_constant(conv_.input(2));
      return own_is_constant && take_bias();
    }
    const bool all_known = std::none_of(extents->begin(), extents->end(), [](int64_t extent) { return extent < 0; });
    return all_known && graph_.partial_shape(other) == extents && append(EpilogueStage::add);
  }

  /// Constants that add up with the bias there is: it must be the last stage so far.
  bool take_bias() { return before(EpilogueStage::add) && (has(EpilogueStage::bias) || append(EpilogueStage::bias)); }

  /// Stages stand in the order of EpilogueStage, each at most once.
  bool append(EpilogueStage stage) {
    if (!before(stage)) {
      return false;
    }
    result_.epilogue.push_back(stage);
    return true;
  }

  const Graph& graph_;
  const onnx::NodeProto& conv_;
  Folded result_;
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

Folded unfolded(const onnx::NodeProto& conv) {
  Folded folded;
  if (conv.input_size() > 2 && !conv.input(2).empty()) {
    folded.epilogue.push_back(EpilogueStage::bias);
  }
  return folded;
}

Folded fold(const Graph& graph, const onnx::NodeProto& conv, const std::set<const onnx::NodeProto*>& taken) {
  return Folding(graph, conv).run(taken);
}

}  // namespace kiln::onnx_frontend
