#include "onnx/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>

#include "kiln/base/error.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/pool_backward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "onnx/attributes.h"
#include "onnx/load.h"
#include "onnx/readers.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {
namespace {

/// Why windows over input 0 are not covered; empty if they are.
std::string refusal_of_input(const Source& source) {
  const auto extents = source.graph.partial_shape(source.node.input(0));
  if (extents && (extents->size() < 3 || extents->size() > 5)) {
    const auto spatial = static_cast<int64_t>(extents->size()) - 2;
    return spatial < 1 ? "its input has no spatial dimensions"
                       : fmt::format("it is {}-D, and 1-D to 3-D are covered", spatial);
  }
  return {};
}

Extents with_outputs(int64_t n, int64_t channels, const PerAxis& outputs) {
  Extents extents{n, channels};
  extents.insert(extents.end(), outputs.begin(), outputs.end());
  return extents;
}

bool has_constant_weights(const Source& source) {
  return source.options.constant_weights && source.graph.is_constant(source.node.input(1));
}

Layer read_conv(const Source& source) {
  require_inputs(source, 2, 3);
  if (std::string refusal = refusal_of_input(source); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  const Extents x = source.extents(0), w = source.extents(1);
  if (w.size() != x.size()) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: the input has {} dimensions, but the filter has {}",
                                                    describe(source.node), x.size(), w.size()));
  }
  const Window window = window_of(source.node, x, Extents(w.begin() + 2, w.end()));
  ConvForward conv;
  conv.x = source.spec(x);
  conv.w = source.spec(w);
  conv.y = source.spec(with_outputs(x[0], w[0], window.outputs));
  conv.pad_begin = window.pad_begin;
  conv.pad_end = window.pad_end;
  conv.stride = window.stride;
  conv.dilation = window.dilation;
  conv.groups = Attributes(source.node).integer("group", 1);
  if (source.has_input(2)) conv.epilogue.push_back(EpilogueStage::bias);
  conv.dynamic_batch = source.options.dynamic_batch;
  conv.constant_weights = has_constant_weights(source);
  return asked(conv.request());
}

/// Of a window that conv_backward_data does not have; empty if it has it.
std::string refusal_of_transposed(const Window& window) {
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t smallest =
        window.outputs[d] + window.pad_begin[d] + window.pad_end[d] - window.dilation[d] * (window.kernel[d] - 1) - 1;
    if (window.pad_begin[d] < 0 || window.pad_end[d] < 0) {
      return "its output is larger than its windows reach";
    }
    if (window.outputs[d] < 1 || smallest < 0) {
      return "its output is empty";
    }
  }
  return {};
}

Layer read_conv_transpose(const Source& source) {
  require_inputs(source, 2, 3);
  if (std::string refusal = refusal_of_input(source); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  const Extents x = source.extents(0), w = source.extents(1);
  if (w.size() != x.size()) {
    throw Error(ErrorCode::parse_error, fmt::format("{}: the input has {} dimensions, but the filter has {}",
                                                    describe(source.node), x.size(), w.size()));
  }
  const Window window = transposed_window_of(source.node, x, Extents(w.begin() + 2, w.end()));
  if (std::string refusal = refusal_of_transposed(window); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  ConvBackwardData conv;
  conv.groups = Attributes(source.node).integer("group", 1);
  conv.dy = source.spec(x);
  conv.w = source.spec(w);
  conv.dx = source.spec(with_outputs(x[0], w[1] * conv.groups, window.outputs));
  conv.pad_begin = window.pad_begin;
  conv.pad_end = window.pad_end;
  conv.stride = window.stride;
  conv.dilation = window.dilation;
  if (source.has_input(2)) conv.epilogue.push_back(EpilogueStage::bias);
  conv.dynamic_batch = source.options.dynamic_batch;
  conv.constant_weights = has_constant_weights(source);
  for (int i = 0; i < conv.axes(); ++i) {
    if (conv.axis(i).outputs_floor() != conv.axis(i).outputs) {
      return refused("its output_padding is not below its stride");
    }
  }
  return asked(conv.request());
}

PoolForward pool_over(const Source& source, const Extents& x, PoolMode mode, const Window& window) {
  PoolForward pool;
  pool.x = source.spec(x);
  pool.y = source.spec(with_outputs(x[0], x[1], window.outputs));
  pool.mode = mode;
  pool.window = window.kernel;
  pool.pad_begin = window.pad_begin;
  pool.pad_end = window.pad_end;
  pool.stride = window.stride;
  pool.dilation = window.dilation;
  pool.dynamic_batch = source.options.dynamic_batch;
  return pool;
}

/// Why the indices of a MaxPool over x cannot be given; empty if they can. ONNX counts through all of x, Kiln through
/// one channel: who asks where the difference shows cannot be served, but MaxUnpool alone does not show it.
std::string refusal_of_indices(const Source& source, const Extents& x) {
  if (Attributes(source.node).integer("storage_order", 0) != 0) {
    return "its indices count columns first";
  }
  const onnx::NodeProto* user = source.graph.sole_user(source.node.output(1));
  const bool unpools = user != nullptr && is_onnx_domain(user->domain()) && user->op_type() == "MaxUnpool";
  return unpools || (x[0] == 1 && x[1] == 1 && !source.options.dynamic_batch)
             ? ""
             : "its indices count through all channels, and those of pool_forward through one";
}

Layer read_pool(const Source& source) {
  require_inputs(source, 1, 1);
  if (std::string refusal = refusal_of_input(source); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  const Extents x = source.extents(0);
  const bool counts_padding = Attributes(source.node).integer("count_include_pad", 0) != 0;
  const PoolMode mode = source.node.op_type() == "MaxPool" ? PoolMode::max
                        : counts_padding                   ? PoolMode::avg_padded
                                                           : PoolMode::avg;
  PoolForward pool = pool_over(source, x, mode, window_of(source.node, x));
  if (source.gives(1)) {
    if (std::string refusal = refusal_of_indices(source, x); !refusal.empty()) {
      return refused(std::move(refusal));
    }
    pool.indices = source.spec(pool.y.extents, DType::i32);
  }
  return asked(pool.request());
}

Layer read_global_pool(const Source& source) {
  require_inputs(source, 1, 1);
  if (std::string refusal = refusal_of_input(source); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  const Extents x = source.extents(0);
  const PoolMode mode = source.node.op_type() == "GlobalMaxPool" ? PoolMode::max : PoolMode::avg;
  const PerAxis none(x.size() - 2, 0), one(x.size() - 2, 1);
  const Window all{Extents(x.begin() + 2, x.end()), none, none, one, one, one};
  return asked(pool_over(source, x, mode, all).request());
}

/// The MaxPool whose indices a MaxUnpool alone uses; null if they come from anywhere else.
const onnx::NodeProto* pooling_of(const Source& source) {
  const std::string& indices = source.node.input(1);
  for (const onnx::NodeProto& node : source.graph.nodes()) {
    const bool gives = node.output_size() > 1 && node.output(1) == indices;
    if (gives && is_onnx_domain(node.domain()) && node.op_type() == "MaxPool") {
      return source.graph.sole_user(indices) == &source.node ? &node : nullptr;
    }
  }
  return nullptr;
}

/// The spatial extents of what a MaxUnpool gives; nothing if they are not in the file.
std::optional<PerAxis> unpooled_extents(const Source& source, const Extents& y) {
  if (source.has_input(2)) {
    const std::optional<Extents> all = source.graph.integers(source.node.input(2));
    if (!all || all->size() != y.size()) return std::nullopt;
    return PerAxis(all->begin() + 2, all->end());
  }
  return unpooled_outputs(source.node, y);
}

/// Puts maxima back where a MaxPool of the same graph found them.
Layer read_unpool(const Source& source) {
  require_inputs(source, 2, 3);
  const onnx::NodeProto* pooling = pooling_of(source);
  if (pooling == nullptr) {
    return refused("its indices are not those of a MaxPool that nothing else uses");
  }
  const Source pooled{source.graph, *pooling, source.options};
  const Extents x = pooled.extents(0), y = source.extents(0);
  if (std::string refusal = refusal_of_input(pooled); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  if (std::string refusal = refusal_of_indices(pooled, x); !refusal.empty()) {
    return refused("it needs indices that its MaxPool does not give: " + refusal);
  }
  const PoolForward pool = pool_over(pooled, x, PoolMode::max, window_of(*pooling, x));
  if (y != pool.y.extents || unpooled_extents(source, y) != PerAxis(x.begin() + 2, x.end())) {
    return refused("its extents are not those of its MaxPool");
  }
  PoolBackward unpool;
  static_cast<Pooling&>(unpool) = pool;
  unpool.dy = pool.y;
  unpool.indices = source.spec(y, DType::i32);
  unpool.dx = pool.x;
  unpool.dynamic_batch = source.options.dynamic_batch;
  return asked(unpool.request());
}

int64_t product(const Extents& extents, int64_t first, int64_t last) {
  return count_elements(std::span(extents).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)));
}

/// Before opset 13 the dimensions from `axis` on are normalised together, as rows of a matrix. A dynamic batch keeps
/// its own dimension before them.
std::pair<Extents, int64_t> flattened(const Extents& x, int64_t axis, bool keep_batch) {
  const auto rank = static_cast<int64_t>(x.size());
  if (keep_batch && axis > 1) {
    return {{x[0], product(x, 1, axis), product(x, axis, rank)}, 2};
  }
  return {{product(x, 0, axis), product(x, axis, rank)}, 1};
}

Layer read_softmax(const Source& source) {
  require_inputs(source, 1, 1);
  constexpr int64_t first_with_one_axis = 13;
  const bool one_axis = source.graph.opset() >= first_with_one_axis;
  Extents x = source.extents(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = Attributes(source.node).integer("axis", one_axis ? -1 : 1);
  const int64_t last = one_axis ? rank - 1 : rank;
  if (axis < -rank || axis > last) {
    throw Error(ErrorCode::parse_error,
                fmt::format("{}: axis is {}, expected {} to {}", describe(source.node), axis, -rank, last));
  }
  axis += axis < 0 ? rank : 0;
  if (source.options.dynamic_batch && axis == 0) {
    return refused("it normalises over the batch, which is dynamic");
  }
  if (!one_axis) {
    std::tie(x, axis) = flattened(x, axis, source.options.dynamic_batch);
  }
  if (x.empty() || x.size() > 5) {
    return refused(fmt::format("its input has {} dimensions, and 1 to 5 are covered", x.size()));
  }
  SoftmaxForward softmax;
  softmax.x = softmax.y = source.spec(std::move(x));
  softmax.axis = axis;
  softmax.mode = source.node.op_type() == "LogSoftmax" ? SoftmaxMode::log : SoftmaxMode::accurate;
  softmax.dynamic_batch = source.options.dynamic_batch;
  return asked(softmax.request());
}

/// In inference it gives its input.
Layer read_dropout(const Source& source) {
  require_inputs(source, 1, 3);
  const bool trains = source.has_input(2) && source.graph.integers(source.node.input(2)) != Extents{0};
  return trains || source.gives(1) ? refused("it drops elements out, as in training") : Layer{};
}

/// How nodes are read.
struct Entry {
  Layer (*read)(const Source& source);
  Elements elements;
  int operands;  ///< So many of its first inputs are tensors of layers; the others are numbers of the node.
  /// What stands between layers. Where extents of such a node are open it is left out; those of a layer have to be
  /// known.
  bool stands_between;
  bool in_fp8 = false;  ///< Whether its operations take f8e4m3 and f8e5m2.
};

constexpr int all = std::numeric_limits<int>::max();

constexpr Entry layer(Layer (*read)(const Source&)) {
  return {read, Elements::floating, 1, false};
}
constexpr Entry between(Layer (*read)(const Source&), Elements elements, int operands) {
  return {read, elements, operands, true};
}

constexpr Entry in_fp8_too(Entry entry) {
  entry.in_fp8 = true;
  return entry;
}

/// Nodes that are read alike.
struct Family {
  Entry entry;
  std::vector<std::string> nodes;
};

const std::vector<Family>& families() {
  using enum Elements;
  static const std::vector<Family> all_of_them = {
      {in_fp8_too(layer(read_conv)), {"Conv"}},
      {in_fp8_too(layer(read_conv_transpose)), {"ConvTranspose"}},
      {layer(read_pool), {"MaxPool", "AveragePool"}},
      {layer(read_global_pool), {"GlobalMaxPool", "GlobalAveragePool"}},
      {layer(read_unpool), {"MaxUnpool"}},
      {in_fp8_too(layer(read_softmax)), {"Softmax", "LogSoftmax"}},
      {between(read_batch_norm, floating, 5), {"BatchNormalization"}},
      {between(read_instance_norm, floating, 3), {"InstanceNormalization"}},
      {between(read_group_norm, floating, 3), {"GroupNormalization"}},
      {between(read_layer_norm, floating, 3), {"LayerNormalization"}},
      {between(read_mean_variance_norm, floating, 1), {"MeanVarianceNormalization"}},
      {between(read_lrn, floating, 1), {"LRN"}},
      {in_fp8_too(between(read_activation, floating, 1)),
       {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Selu", "Softplus", "HardSwish", "HardSigmoid", "Gelu", "Mish"}},
      {in_fp8_too(between(read_clip, floating, 1)), {"Clip"}},
      {between(read_thresholded_relu, floating, 1), {"ThresholdedRelu"}},
      {between(read_prelu, floating, all), {"PRelu"}},
      {between(read_celu, floating, 1), {"Celu"}},
      {between(read_softsign, floating, 1), {"Softsign"}},
      {between(read_reciprocal, floating, 1), {"Reciprocal"}},
      {between(read_tensor_op, floating, all),
       {"Add", "Sub", "Mul", "Div", "Pow", "Sum", "Mean", "Sqrt", "Exp", "Log", "Abs", "Neg"}},
      {between(read_tensor_op, exact, all),
       {"Min", "Max", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "Where"}},
      {in_fp8_too(between(read_gemm, floating, 3)), {"Gemm"}},
      {in_fp8_too(between(read_matmul, floating, 2)), {"MatMul"}},
      {between(read_reduce, floating, 1),
       {"ReduceSum", "ReduceProd", "ReduceMin", "ReduceMax", "ReduceMean", "ReduceL1", "ReduceL2"}},
      {between(read_composed_reduce, floating, 1), {"ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}},
      {between(read_arg, floating, 1), {"ArgMax", "ArgMin"}},
      {in_fp8_too(between(read_transpose, movable, 1)), {"Transpose"}},
      {in_fp8_too(between(read_slice, movable, 1)), {"Slice"}},
      {in_fp8_too(between(read_split, movable, 1)), {"Split"}},
      {in_fp8_too(between(read_concat, movable, all)), {"Concat"}},
      {in_fp8_too(between(read_pad, movable, 1)), {"Pad"}},
      {in_fp8_too(between(read_expand, movable, 1)), {"Expand"}},
      {in_fp8_too(between(read_cast, movable, 1)), {"Cast"}},
      {between(read_dropout, movable, 1), {"Dropout"}},
  };
  return all_of_them;
}

const Entry* entry_of(const onnx::NodeProto& node) {
  const auto family = std::find_if(families().begin(), families().end(), [&](const Family& candidate) {
    return std::count(candidate.nodes.begin(), candidate.nodes.end(), node.op_type()) > 0;
  });
  return is_onnx_domain(node.domain()) && family != families().end() ? &family->entry : nullptr;
}

/// Why the operands cannot be taken, whatever becomes of them; empty if they can.
std::string refusal_of_operands(const Source& source, const Entry& entry) {
  if (!entry.in_fp8 && DTypes::fp8.holds(source.options.dtype)) {
    return fmt::format("its operation does not take {}", to_string(source.options.dtype));
  }
  for (int i = 0; i < std::min(entry.operands, source.node.input_size()); ++i) {
    if (!source.has_input(i)) continue;
    const std::string& value = source.node.input(i);
    if (std::string refusal = refusal_of_elements(source.graph.element_type(value), entry.elements); !refusal.empty()) {
      return refusal;
    }
    if (!entry.stands_between) continue;
    const std::optional<Extents> extents = source.graph.partial_shape(value);
    if (!extents || std::count(extents->begin(), extents->end(), -1) > 0) return "its extents are not all known";
    if (std::count(extents->begin(), extents->end(), 0) > 0) return "it has an input without elements";
    if (extents->size() > 5)
      return fmt::format("its input has {} dimensions, and up to 5 are covered", extents->size());
  }
  return {};
}

}  // namespace

Layer read_layer(const Graph& graph, const onnx::NodeProto& node, const OnnxOptions& options) {
  const Entry* entry = entry_of(node);
  if (entry == nullptr) return refused("no operation of Kiln serves it");
  const Source source{graph, node, options};
  if (std::string refusal = refusal_of_operands(source, *entry); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  return entry->read(source);
}

}  // namespace kiln::onnx_frontend
