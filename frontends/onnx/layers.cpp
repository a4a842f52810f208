#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/im2col.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/operations/unpool_backward.h"
#include "onnx/integer_products.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {
namespace {

void check_spatial(const Node& node) {
  if (node.rank() < 3) refuse("its input has no spatial dimensions");
  if (node.rank() > 5) refuse(fmt::format("it is {}-D, and 1-D to 3-D are covered", node.rank() - 2));
}

Extents with_outputs(int64_t n, int64_t channels, const PerAxis& outputs) {
  Extents extents{n, channels};
  extents.insert(extents.end(), outputs.begin(), outputs.end());
  return extents;
}

/// `filter`: the input that has it.
void check_filter(const Node& node, int filter = 1) {
  check_spatial(node);
  if (node.rank(filter) != node.rank(0)) {
    node.fail(fmt::format("the input has {} dimensions, but the filter has {}", node.rank(0), node.rank(filter)));
  }
}

/// The window of a filter, which is input `filter`.
Window filter_window(const Node& node, int filter) {
  check_filter(node, filter);
  const Extents& w = node.extents(filter);
  return window_of(node.proto(), node.extents(0), Extents(w.begin() + 2, w.end()));
}

/// Reason why conv_backward_data does not have a window; empty if it has it.
std::string refusal_of_transposed(const Window& window) {
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t smallest =
        window.outputs[d] + window.pad_begin[d] + window.pad_end[d] - window.dilation[d] * (window.kernel[d] - 1) - 1;
    if (window.pad_begin[d] < 0 || window.pad_end[d] < 0) return "its output is larger than its windows reach";
    if (window.outputs[d] < 1 || smallest < 0) return "its output is empty";
  }
  return {};
}

template <typename Windowed>
void set_window(Windowed& request, const Window& window) {
  request.pad_begin = window.pad_begin;
  request.pad_end = window.pad_end;
  request.stride = window.stride;
  request.dilation = window.dilation;
}

/// The bias of a convolution, which is one of its operands where the node has it.
template <typename Conv>
void add_bias(const Node& node, Conv& conv, std::vector<graph::Operand>& inputs) {
  if (!node.has(2)) return;
  conv.epilogue.push_back(EpilogueStage::bias);
  conv.bias = spec_of(node.graph(), node.operand(2));
  inputs.push_back({"bias", node.operand(2)});
}

PoolForward pool_over(const Node& node, ValueId input, PoolMode mode, const Window& window) {
  const Extents& x = node.extents(0);
  PoolForward pool;
  pool.x = spec_of(node.graph(), input);
  pool.y = spec_of(pool.x.dtype, with_outputs(x[0], x[1], window.outputs));
  pool.mode = mode;
  pool.window = window.kernel;
  set_window(pool, window);
  return pool;
}

/// The pooled integers where x comes from a DequantizeLinear: the largest number is that of the largest integer, as
/// long as the scale is positive.
std::optional<Dequantised> largest_integers(const Node& node, const Window& window) {
  std::optional<Dequantised> from = node.dequantised(0);
  if (!from || !from->is_uniform) return std::nullopt;
  const auto scale = known_elements(node, from->scale);
  if (!scale || !(scale->front() > 0)) return std::nullopt;
  const PoolForward pool = pool_over(node, from->integers, PoolMode::max, window);
  from->integers = node.graph().call(pool.request(), {{"x", from->integers}}).front().value;
  return from;
}

/// The position of each channel's elements among those of all: what ONNX's indices count besides.
ValueId offsets_of_channels(const Node& node, const Extents& x) {
  const int64_t step = graph::count_elements(Extents(x.begin() + 2, x.end()));
  constexpr int64_t exact = int64_t{1} << 24;  // integers that f32 arithmetic holds
  if (graph::count_elements(x) > exact) refuse("its indices count through all channels, beyond 2^24");
  Extents extents{x[0], x[1]};
  extents.resize(x.size(), 1);
  HostTensor offsets(node.budget(), onnx::TensorProto::INT64, std::move(extents));
  int64_t offset = 0;
  for (int64_t& element : offsets.integers()) {
    element = offset;
    offset += step;
  }
  return node.constant("offsets of channels", DType::i32, offsets);
}

}  // namespace

void read_conv(Node& node) {
  node.require_inputs(2, 3);
  const Window window = filter_window(node, 1);
  const auto bias = node.has(2) ? std::optional(node.operand(2)) : std::nullopt;
  if (const auto y = dequantised_convolution(node, window, bias)) return node.give(*y);
  const Extents &x = node.extents(0), &w = node.extents(1);
  ConvForward conv;
  conv.x = spec_of(node.graph(), node.operand(0));
  conv.w = spec_of(node.graph(), node.operand(1));
  conv.y = spec_of(conv.x.dtype, with_outputs(x[0], w[0], window.outputs));
  set_window(conv, window);
  conv.groups = node.attributes().integer("group", 1);
  std::vector<graph::Operand> inputs{{"x", node.operand(0)}, {"w", node.operand(1)}};
  add_bias(node, conv, inputs);
  node.give(node.graph().call(conv.request(), std::move(inputs)).front().value);
}

void read_conv_integer(Node& node) {
  node.require_inputs(2, 4);
  const Window window = filter_window(node, 1);
  const ValueId sums = integer_convolution(node, integer_factor(node, 0, 2), integer_factor(node, 1, 3), window,
                                           node.attributes().integer("group", 1));
  node.give_integers(converted(node, sums, DType::i32), sums);
}

/// Inputs: x, w and the result, each with its scale and zero point, of which the result has nothing else; a bias of
/// sums.
void read_qlinear_conv(Node& node) {
  node.require_inputs(8, 9);
  const Window window = filter_window(node, 3);
  const ValueId sums = integer_convolution(node, integer_factor(node, 0, 2), integer_factor(node, 3, 5), window,
                                           node.attributes().integer("group", 1));
  const ValueId scale = combined_scale(node, node.operand(1), node.operand(4), node.operand(6));
  const auto bias = node.has(8) ? std::optional(node.operand(8)) : std::nullopt;
  node.give_as(node.element_type(7), requantised(node, sums, along_axis(node, scale, 1, node.rank(0)), 7, 1, bias));
}

/// Sums of columns: the gradient of what gathers the windows of an image.
void read_col2im(Node& node) {
  node.require_inputs(3, 3);
  const Extents& x = node.extents(0);
  const std::vector<int64_t> image = node.list(1, "image extents"), block = node.list(2, "block extents");
  if (image.empty() || image.size() != block.size() || x.size() != 3) {
    node.fail(fmt::format("has columns of {}, an image of {} and blocks of {}, expected N,C,L and as many axes of both",
                          fmt::join(x, "x"), fmt::join(image, "x"), fmt::join(block, "x")));
  }
  if (image.size() > 3) refuse(fmt::format("its image has {} axes, and up to 3 are covered", image.size()));
  if (node.is_integer(0)) refuse("its elements are integers");
  const Window window = window_of(node.proto(), with_outputs(x[0], 1, image), block);
  int64_t taps = 1, columns = 1;
  for (size_t d = 0; d < image.size(); ++d) {
    taps = node.multiply(taps, window.kernel[d]);
    columns = node.multiply(columns, window.outputs[d]);
  }
  if (x[1] % taps != 0 || x[2] != columns) {
    node.fail(fmt::format("has columns of {}, expected a multiple of {} channels and {} columns", fmt::join(x, "x"),
                          taps, columns));
  }
  if (x[1] == 0 || *std::min_element(image.begin(), image.end()) < 1) refuse("its result has no elements");
  graph::Graph& graph = node.graph();
  const ValueId unfolded = graph.reshape(node.operand(0), with_outputs(x[0], x[1], window.outputs));
  Col2im fold;
  fold.x = spec_of(graph, unfolded);
  fold.y = spec_of(fold.x.dtype, with_outputs(x[0], x[1] / taps, image));
  fold.window = window.kernel;
  set_window(fold, window);
  node.give(graph.call(fold.request(), {{"x", unfolded}}).front().value);
}

void read_conv_transpose(Node& node) {
  node.require_inputs(2, 3);
  check_filter(node);
  const Extents &x = node.extents(0), &w = node.extents(1);
  const Window window = transposed_window_of(node.proto(), x, Extents(w.begin() + 2, w.end()));
  if (std::string refusal = refusal_of_transposed(window); !refusal.empty()) refuse(std::move(refusal));
  ConvBackwardData conv;
  conv.groups = node.attributes().integer("group", 1);
  conv.dy = spec_of(node.graph(), node.operand(0));
  conv.w = spec_of(node.graph(), node.operand(1));
  conv.dx = spec_of(conv.dy.dtype, with_outputs(x[0], node.multiply(w[1], conv.groups), window.outputs));
  set_window(conv, window);
  for (int i = 0; i < conv.axes(); ++i) {
    if (conv.axis(i).outputs_floor() != conv.axis(i).outputs) refuse("its output_padding is not below its stride");
  }
  std::vector<graph::Operand> inputs{{"dy", node.operand(0)}, {"w", node.operand(1)}};
  add_bias(node, conv, inputs);
  node.give(node.graph().call(conv.request(), std::move(inputs)).front().value);
}

void read_pool(Node& node) {
  node.require_inputs(1, 1);
  check_spatial(node);
  const bool counts_padding = node.attributes().integer("count_include_pad", 0) != 0;
  const PoolMode mode = node.type() == "MaxPool" ? PoolMode::max
                        : counts_padding         ? PoolMode::avg_padded
                                                 : PoolMode::avg;
  const Window window = window_of(node.proto(), node.extents(0));
  if (mode == PoolMode::max && !node.gives(1)) {
    if (std::optional<Dequantised> from = largest_integers(node, window)) {
      return node.give_dequantised(node.element_type(0), dequantised(node, *from, node.dtype(0)), *from);
    }
  }
  PoolForward pool = pool_over(node, node.operand(0), mode, window);
  if (!node.gives(1)) {
    return node.give(node.graph().call(pool.request(), {{"x", node.operand(0)}}).front().value);
  }
  if (node.attributes().integer("storage_order", 0) != 0) refuse("its indices count columns first");
  pool.indices = spec_of(DType::i32, pool.y.extents);
  const std::vector<graph::Operand> given = node.graph().call(pool.request(), {{"x", node.operand(0)}});
  node.give(given[0].value);
  const ValueId counted =
      tensor_op(node, TensorOpMode::add, {given[1].value, offsets_of_channels(node, node.extents(0))}, DType::i32);
  node.give_as(onnx::TensorProto::INT64, counted, 1);
}

void read_global_pool(Node& node) {
  node.require_inputs(1, 1);
  check_spatial(node);
  const PoolMode mode = node.type() == "GlobalMaxPool" ? PoolMode::max : PoolMode::avg;
  const Extents& x = node.extents(0);
  const PerAxis none(x.size() - 2, 0), one(x.size() - 2, 1);
  const Window all{Extents(x.begin() + 2, x.end()), none, none, one, one, one};
  node.give(
      node.graph().call(pool_over(node, node.operand(0), mode, all).request(), {{"x", node.operand(0)}}).front().value);
}

void read_unpool(Node& node) {
  node.require_inputs(2, 3);
  check_spatial(node);
  refuse("its indices count through all channels, and those of Kiln through one");
}

/// Before opset 13 the dimensions from `axis` on are normalised together, as rows of a matrix.
void read_softmax(Node& node) {
  node.require_inputs(1, 1);
  constexpr int64_t first_with_one_axis = 13;
  const bool one_axis = node.opset() >= first_with_one_axis;
  const Extents x = node.extents(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = node.attributes().integer("axis", one_axis ? -1 : 1);
  const int64_t last = one_axis ? rank - 1 : rank;
  if (axis < -rank || axis > last) node.fail(fmt::format("axis is {}, expected {} to {}", axis, -rank, last));
  axis += axis < 0 ? rank : 0;
  const Extents outer(x.begin(), x.begin() + axis), behind(x.begin() + axis + (one_axis ? 1 : 0), x.end());
  graph::Graph& graph = node.graph();
  ValueId value = node.operand(0);
  if (!one_axis) {
    value = graph.reshape(value, {graph::count_elements(outer), graph::count_elements(behind)});
    axis = 1;
  } else if (rank > 5) {
    value = graph.reshape(value,
                          {graph::count_elements(outer), x[static_cast<size_t>(axis)], graph::count_elements(behind)});
    axis = 1;
  }
  SoftmaxForward softmax;
  softmax.x = softmax.y = spec_of(graph, value);
  softmax.axis = axis;
  softmax.mode = node.type() == "LogSoftmax" ? SoftmaxMode::log : SoftmaxMode::accurate;
  node.give(graph.reshape(graph.call(softmax.request(), {{"x", value}}).front().value, x));
}

/// In inference it gives its input.
void read_dropout(Node& node) {
  node.require_inputs(1, 3);
  if (node.has(2) && node.number(2, "training mode") != 0) refuse("it drops elements out, as in training");
  if (node.gives(1)) {
    node.give_repeated({onnx::TensorProto::BOOL, {}, HostTensor::Integers{1}}, node.extents(0), 1);
  }
  node.give(node.operand(0));
}

}  // namespace kiln::onnx_frontend
