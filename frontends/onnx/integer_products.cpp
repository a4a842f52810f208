// Sums of (x - zx) (w - zw) are those of x w, which Kiln's operations compute, less zx times the sums of (w - zw),
// which are known before x where w is, less zw times the sums of x.
#include "onnx/integer_products.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "kiln/generator/operations/conv_forward.h"
#include "kiln/reference/convert.h"
#include "onnx/products.h"
#include "onnx/reductions.h"

namespace kiln::onnx_frontend {
namespace {

bool is_byte(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8;
}

bool is_one(const Node& node, ValueId value) {
  return graph::count_elements(node.graph().value(value).extents) == 1;
}

/// Weights of u8 as i8, with a zero point that is less by as much: zero points are mostly near 128, so sums of products
/// stay small, and tensor cores multiply more of them before they overflow.
IntegerFactor centred(const Node& node, const IntegerFactor& w) {
  graph::Graph& graph = node.graph();
  if (!w.zero || graph.value(w.value).dtype != DType::u8 || !node.graph().is_constant(w.value)) return w;
  constexpr const char* code = "acc - 128.0f";
  return {expression(node, code, w.value, {}, DType::i8), expression(node, code, *w.zero, {}, DType::f32)};
}

/// One 1, wherever it is looked at.
ValueId ones(const Node& node, Extents extents) {
  const HostTensor one(onnx::TensorProto::INT8, Extents(extents.size(), 1), HostTensor::Integers{1});
  return node.graph().repeat(node.constant("one", DType::i8, one), std::move(extents));
}

ValueId convolution(const Node& node, ValueId x, ValueId w, const Window& window, int64_t groups) {
  graph::Graph& graph = node.graph();
  ConvForward conv;
  conv.x = spec_of(graph, x);
  conv.w = spec_of(graph, w);
  Extents y{conv.x.extents[0], conv.w.extents[0]};
  y.insert(y.end(), window.outputs.begin(), window.outputs.end());
  conv.y = spec_of(DType::f32, y);
  conv.pad_begin = window.pad_begin;
  conv.pad_end = window.pad_end;
  conv.stride = window.stride;
  conv.dilation = window.dilation;
  conv.groups = groups;
  return graph.call(conv.request(), {{"x", x}, {"w", w}}).front().value;
}

/// sums - zero * others.
ValueId without(const Node& node, ValueId sums, ValueId zero, ValueId others) {
  return expression(node, "fmaf(-zero, others, acc)", sums, {{"zero", zero}, {"others", others}}, DType::f32);
}

bool has_padding(const Window& window) {
  const auto is_open = [](int64_t pad) { return pad != 0; };
  return std::any_of(window.pad_begin.begin(), window.pad_begin.end(), is_open) ||
         std::any_of(window.pad_end.begin(), window.pad_end.end(), is_open);
}

/// Sums of (w - zw) over the elements of each window that are inside of x, for each filter; where all of them are
/// inside, one place stands for all.
ValueId filter_sums(const Node& node, const Extents& x, const IntegerFactor& w, const Window& window, int64_t groups) {
  graph::Graph& graph = node.graph();
  const Extents filter = graph.value(w.value).extents;
  Extents image = x, one_image = x, one_filter = filter;
  image[0] = one_image[0] = one_filter[0] = 1;
  one_image[1] = filter[1];
  Window inside = window;
  if (!has_padding(window)) {
    for (size_t d = 0; d < window.kernel.size(); ++d) {
      inside.outputs[d] = 1;
      image[2 + d] = one_image[2 + d] = window.dilation[d] * (window.kernel[d] - 1) + 1;
    }
  }
  const ValueId sums = convolution(node, ones(node, image), w.value, inside, groups);
  if (!w.zero) return sums;
  return without(node, sums, *w.zero, convolution(node, ones(node, one_image), ones(node, one_filter), inside, 1));
}

/// The numbers that a factor stands for, along dimension `axis`: f16 holds integers up to 2048.
ValueId in_f16(const Node& node, const IntegerFactor& factor, size_t axis) {
  if (!factor.zero) return converted(node, factor.value, DType::f16);
  const size_t rank = node.graph().value(factor.value).extents.size();
  return expression(node, "acc - zero", factor.value, {{"zero", along_axis(node, *factor.zero, axis, rank)}},
                    DType::f16);
}

/// Whether x is better multiplied in f16: where it is padded, its zero point needs a term for each place of y, which
/// takes longer to read in the first layer of a network than f16 takes to multiply.
bool is_better_in_f16(const Extents& x, const Window& window, int64_t groups) {
  constexpr int64_t most_channels = 16;
  return has_padding(window) && groups == 1 && x[1] <= most_channels;
}

/// The zero point of a matrix: of one element, of one for each row or column, or with dimensions of its own.
ValueId zero_of_matrix(const Node& node, ValueId zero, size_t axis, size_t rank) {
  if (node.graph().value(zero).extents.size() > 1) return with_rank(node.graph(), zero, rank);
  return along_axis(node, zero, axis, rank);
}

}  // namespace

std::optional<std::vector<double>> known_elements(const Node& node, ValueId id) {
  const graph::Bytes& bytes = node.graph().bytes(id);
  const graph::Value& value = node.graph().value(id);
  const int64_t count = graph::count_elements(value.extents);
  if (bytes == nullptr || !is_few(onnx::TensorProto::FLOAT, count)) return std::nullopt;
  node.budget().take_elements(count);
  std::vector<double> elements(static_cast<size_t>(count));
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = reference::load(value.dtype, bytes->data() + i * static_cast<size_t>(size_of(value.dtype)));
  }
  return elements;
}

ValueId along_axis(const Node& node, ValueId value, size_t axis, size_t rank) {
  const Extents& extents = node.graph().value(value).extents;
  if (extents.size() > 1) {
    node.fail(fmt::format("a scale or zero point has {} dimensions, expected 0 or 1", extents.size()));
  }
  Extents result(rank, 1);
  if (!extents.empty() && rank > 0) result[axis] = extents[0];
  return node.graph().reshape(value, std::move(result));
}

bool is_known_to_be(const Node& node, int input, double number) {
  const HostTensor* known = node.host(input);
  if (known == nullptr) return false;
  for (size_t i = 0; i < known->size(); ++i) {
    if (known->real(i) != number) return false;
  }
  return true;
}

void require_type_of(const Node& node, int zero, int value) {
  if (node.element_type(zero) == node.element_type(value)) return;
  node.fail(fmt::format("input {} is of type {}, expected {} as input {}", zero, type_name(node.element_type(zero)),
                        type_name(node.element_type(value)), value));
}

IntegerFactor integer_factor(const Node& node, int value, int zero) {
  if (!is_byte(node.dtype(value))) {
    refuse(fmt::format("input {} is of type {}, and int8 and uint8 are covered", value,
                       type_name(node.element_type(value))));
  }
  if (!node.has(zero)) return {node.operand(value), {}};
  require_type_of(node, zero, value);
  return {node.operand(value), is_known_to_be(node, zero, 0) ? std::nullopt : std::optional(node.operand(zero))};
}

ValueId integer_convolution(const Node& node, const IntegerFactor& x, const IntegerFactor& weights,
                            const Window& window, int64_t groups) {
  graph::Graph& graph = node.graph();
  const Extents image = graph.value(x.value).extents;
  const size_t rank = image.size();
  if (x.zero && is_better_in_f16(image, window, groups)) {
    return convolution(node, in_f16(node, x, 1), in_f16(node, weights, 0), window, groups);
  }
  IntegerFactor w = centred(node, weights);
  if (w.zero) w.zero = along_axis(node, *w.zero, 1, rank);
  ValueId sums = convolution(node, x.value, w.value, window, groups);
  if (x.zero) {
    sums = without(node, sums, along_axis(node, *x.zero, 1, rank), filter_sums(node, image, w, window, groups));
  }
  if (!w.zero) return sums;
  Extents filter = graph.value(w.value).extents;
  if (groups == 1) filter[0] = 1;  // the same sum for all filters
  return without(node, sums, *w.zero, convolution(node, x.value, ones(node, filter), window, groups));
}

ValueId integer_matrix_product(const Node& node, const IntegerFactor& left, const IntegerFactor& right) {
  graph::Graph& graph = node.graph();
  const Extents x = graph.value(left.value).extents, y = graph.value(right.value).extents;
  if (x.empty() || y.empty()) node.fail("an input has no dimensions");
  const IntegerFactor a{x.size() > 1 ? left.value : graph.reshape(left.value, {1, x[0]}), left.zero};
  const IntegerFactor b =
      centred(node, {y.size() > 1 ? right.value : graph.reshape(right.value, {y[0], 1}), right.zero});
  const size_t a_rank = std::max<size_t>(x.size(), 2), b_rank = std::max<size_t>(y.size(), 2);
  ValueId sums = matrix_product(node, a.value, b.value, DType::f32);
  Extents result = graph.value(sums).extents;
  const auto depth = static_cast<double>(x.back());
  std::optional<ValueId> b_zero;
  if (b.zero) b_zero = zero_of_matrix(node, *b.zero, b_rank - 1, b_rank);
  if (a.zero) {
    ValueId columns = reduction(node, b.value, {b_rank - 2}, ReduceMode::add, false, DType::f32).front();
    if (b_zero) columns = without(node, columns, *b_zero, constant(node, DType::f32, depth));
    sums = without(node, sums, zero_of_matrix(node, *a.zero, a_rank - 2, a_rank), columns);
  }
  if (b_zero) {
    sums = without(node, sums, *b_zero,
                   reduction(node, a.value, {a_rank - 1}, ReduceMode::add, false, DType::f32).front());
  }
  if (graph.value(sums).extents != result) node.fail("a zero point has other extents than the matrices");
  if (y.size() == 1) result.pop_back();
  if (x.size() == 1) result.erase(result.end() - (y.size() == 1 ? 1 : 2));
  return graph.reshape(sums, result);
}

ValueId combined_scale(const Node& node, ValueId a, ValueId b, std::optional<ValueId> c) {
  const auto known_a = known_elements(node, a), known_b = known_elements(node, b);
  const auto known_c = c ? known_elements(node, *c) : std::vector<double>{1};
  const bool is_known = known_a && known_b && known_c && known_a->size() == 1 && known_c->size() == 1;
  if (!is_known) {
    const ValueId product = tensor_op(node, TensorOpMode::mul, {a, b}, DType::f32);
    return c ? tensor_op(node, TensorOpMode::div, {product, *c}, DType::f32) : product;
  }
  HostTensor::Reals scales;
  for (const double scale : *known_b) {
    const float product = static_cast<float>(known_a->front()) * static_cast<float>(scale);
    scales.push_back(product / static_cast<float>(known_c->front()));
  }
  return node.constant("scale", DType::f32,
                       HostTensor(onnx::TensorProto::FLOAT, node.graph().value(b).extents, std::move(scales)));
}

ValueId expression_within(const Node& node, std::string_view code, ValueId x, const std::vector<NamedValue>& tensors,
                          DType y) {
  const ValueId result = expression(node, code, x, tensors, y);
  const Extents &expected = node.graph().value(x).extents, &found = node.graph().value(result).extents;
  if (found != expected) {
    node.fail(fmt::format("its scales, zero points or bias repeat to {}, expected {}", fmt::join(found, "x"),
                          fmt::join(expected, "x")));
  }
  return result;
}

ValueId requantised(const Node& node, ValueId sums, ValueId scale, int zero, size_t axis, std::optional<ValueId> bias) {
  const DType y = node.dtype(zero);
  if (!is_byte(y)) {
    refuse(fmt::format("input {} is of type {}, and int8 and uint8 are covered", zero,
                       type_name(node.element_type(zero))));
  }
  const size_t rank = node.graph().value(sums).extents.size();
  std::vector<NamedValue> tensors = {{"scale", scale}, {"zero", zero_of_matrix(node, node.operand(zero), axis, rank)}};
  if (bias) tensors.push_back({"bias", along_axis(node, *bias, axis, rank)});
  return expression_within(node, bias ? "rintf((acc + bias) * scale) + zero" : "rintf(acc * scale) + zero", sums,
                           tensors, y);
}

ValueId dequantised(const Node& node, const Dequantised& from, DType y) {
  const size_t rank = node.graph().value(from.integers).extents.size();
  std::vector<NamedValue> tensors = {{"scale", along_axis(node, from.scale, from.axis, rank)}};
  if (from.zero) tensors.push_back({"zero", along_axis(node, *from.zero, from.axis, rank)});
  return expression_within(node, from.zero ? "(acc - zero) * scale" : "acc * scale", from.integers, tensors, y);
}

std::optional<ValueId> dequantised_convolution(const Node& node, const Window& window, std::optional<ValueId> bias) {
  const auto &x = node.dequantised(0), &w = node.dequantised(1);
  if (!x || !w || !is_one(node, x->scale) || (!is_one(node, w->scale) && w->axis != 0)) return std::nullopt;
  const size_t rank = node.rank(0);
  const ValueId sums = integer_convolution(node, {x->integers, x->zero}, {w->integers, w->zero}, window,
                                           node.attributes().integer("group", 1));
  std::vector<NamedValue> tensors = {{"scale", along_axis(node, combined_scale(node, x->scale, w->scale), 1, rank)}};
  if (bias) tensors.push_back({"bias", along_axis(node, *bias, 1, rank)});
  return expression_within(node, bias ? "fmaf(acc, scale, bias)" : "acc * scale", sums, tensors, node.dtype(0));
}

std::optional<ValueId> dequantised_product(const Node& node, std::optional<ValueId> bias) {
  const auto &a = node.dequantised(0), &b = node.dequantised(1);
  if (!a || !b || !is_one(node, a->scale) || node.rank(1) < 2) return std::nullopt;
  const auto turns = [&](const char* attribute) {
    return node.type() == "Gemm" && node.attributes().integer(attribute, 0) != 0;
  };
  const auto factor = [&](const Dequantised& from, bool is_turned) {
    return IntegerFactor{is_turned ? node.graph().permute(from.integers, {1, 0}) : from.integers, from.zero};
  };
  if (!is_one(node, b->scale) && b->axis != (turns("transB") ? 0 : node.rank(1) - 1)) return std::nullopt;
  const ValueId sums = integer_matrix_product(node, factor(*a, turns("transA")), factor(*b, turns("transB")));
  const size_t rank = node.graph().value(sums).extents.size();
  std::vector<NamedValue> tensors = {
      {"scale", along_axis(node, combined_scale(node, a->scale, b->scale), rank - 1, rank)}};
  if (bias) tensors.push_back({"bias", *bias});
  return expression_within(node, bias ? "fmaf(acc, scale, bias)" : "acc * scale", sums, tensors, node.dtype(0));
}

}  // namespace kiln::onnx_frontend
