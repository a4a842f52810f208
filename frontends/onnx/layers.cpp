#include "onnx/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "kiln/base/error.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "onnx/attributes.h"
#include "onnx/load.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {
namespace {

using Extents = std::vector<int64_t>;

/// A node in the course of being read.
struct Source {
  const Graph& graph;
  const onnx::NodeProto& node;
  const std::vector<EpilogueStage>& epilogue;
  const OnnxOptions& options;

  Extents extents(int input) const { return graph.shape(node, node.input(input)); }
  TensorSpec spec(Extents extents) const {
    std::string order(dimension_letters(static_cast<int>(extents.size())));
    const bool is_spatial = extents.size() >= 3;
    if (is_spatial && options.order == MemoryOrder::nhwc) order = "n" + order.substr(2) + "c";
    return TensorSpec::packed(options.dtype, std::move(extents), order);
  }
};

Layer refused(std::string reason) {
  return {std::nullopt, std::move(reason)};
}

void require_inputs(const Source& source, int least, int most) {
  const int given = source.node.input_size();
  const bool missing = std::any_of(source.node.input().begin(), source.node.input().begin() + std::min(given, least),
                                   [](const std::string& input) { return input.empty(); });
  if (given < least || given > most || missing || source.node.output_size() < 1) {
    throw Error(ErrorCode::parse_error,
                fmt::format("{}: has {} inputs and {} outputs, expected {} to {} and at least 1", describe(source.node),
                            given, source.node.output_size(), least, most));
  }
}

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
  conv.epilogue = source.epilogue;
  conv.dynamic_batch = source.options.dynamic_batch;
  return {conv.request(), {}};
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

/// Its bias, if it has one, is left to the application: gradients have no epilogue.
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
  conv.dynamic_batch = source.options.dynamic_batch;
  for (int i = 0; i < conv.axes(); ++i) {
    if (conv.axis(i).outputs_floor() != conv.axis(i).outputs) {
      return refused("its output_padding is not below its stride");
    }
  }
  return {conv.request(), {}};
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

Layer read_pool(const Source& source) {
  require_inputs(source, 1, 1);
  if (std::string refusal = refusal_of_input(source); !refusal.empty()) {
    return refused(std::move(refusal));
  }
  if (source.node.output_size() > 1 && source.graph.is_used(source.node.output(1))) {
    return refused("it returns the indices of the maxima");
  }
  const Extents x = source.extents(0);
  const bool counts_padding = Attributes(source.node).integer("count_include_pad", 0) != 0;
  const PoolMode mode = source.node.op_type() == "MaxPool" ? PoolMode::max
                        : counts_padding                   ? PoolMode::avg_padded
                                                           : PoolMode::avg;
  return {pool_over(source, x, mode, window_of(source.node, x)).request(), {}};
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
  return {pool_over(source, x, mode, all).request(), {}};
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
  return {softmax.request(), {}};
}

using Reader = Layer (*)(const Source&);

Reader reader_of(const onnx::NodeProto& node) {
  static const std::map<std::string, Reader> readers = {
      {"Conv", read_conv},        {"ConvTranspose", read_conv_transpose}, {"MaxPool", read_pool},
      {"AveragePool", read_pool}, {"GlobalMaxPool", read_global_pool},    {"GlobalAveragePool", read_global_pool},
      {"Softmax", read_softmax},  {"LogSoftmax", read_softmax},
  };
  const auto reader = readers.find(node.op_type());
  return is_onnx_domain(node.domain()) && reader != readers.end() ? reader->second : nullptr;
}

bool is_floating(int32_t type) {
  return type == onnx::TensorProto::UNDEFINED || type == onnx::TensorProto::FLOAT ||
         type == onnx::TensorProto::DOUBLE || type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16;
}

std::string refusal_of_other(const onnx::NodeProto& node, const OnnxOptions& options) {
  static const std::vector<std::string> foldable = {"BatchNormalization", "Add", "Relu", "Clip"};
  const bool could = is_onnx_domain(node.domain()) && std::count(foldable.begin(), foldable.end(), node.op_type()) > 0;
  if (!could) {
    return "no operation of Kiln serves it";
  }
  return options.fuse ? "it could not be folded into a convolution" : "folding is off";
}

}  // namespace

Layer read_layer(const Graph& graph, const onnx::NodeProto& node, const std::vector<EpilogueStage>& epilogue,
                 const OnnxOptions& options) {
  const Reader reader = reader_of(node);
  if (reader == nullptr) {
    return refused(refusal_of_other(node, options));
  }
  if (node.input_size() > 0 && !is_floating(graph.element_type(node.input(0)))) {
    return refused("its elements are not floating-point numbers");
  }
  return reader({graph, node, epilogue, options});
}

}  // namespace kiln::onnx_frontend
