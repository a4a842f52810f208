// Quantised tensors: integers, or numbers of 8 bits, with a scale and a zero point.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "onnx/integer_products.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"
#include "onnx/reductions.h"

namespace kiln::onnx_frontend {
namespace {

/// The axis that scales count along; of no use where they have one element.
size_t axis_of(const Node& node) {
  if (graph::count_elements(node.extents(1)) == 1) return 0;
  return node.axis(node.attributes().integer("axis", 1), node.rank());
}

/// A scale or zero point of blocks as one of elements: a block is so many elements along `axis`.
ValueId of_elements(const Node& node, int input, size_t axis, int64_t block) {
  const Extents& x = node.extents(0);
  Extents expected = x;
  expected[axis] = (x[axis] + block - 1) / block;
  if (node.extents(input) != expected) {
    node.fail(fmt::format("input {} is {}, expected {} for blocks of {} along axis {}", input,
                          fmt::join(node.extents(input), "x"), fmt::join(expected, "x"), block, axis));
  }
  std::vector<int64_t> positions = node.table(x[axis]);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i) / block;
  return taken(node, node.operand(input), axis, positions);
}

/// The inverses of scales that are known, where quotients by them stay clear of the ends of f32's range.
std::optional<ValueId> inverses(const Node& node, ValueId scale) {
  const auto known = known_elements(node, scale);
  if (!known) return std::nullopt;
  constexpr double least = 0x1p-60, most = 0x1p60;
  HostTensor::Reals elements;
  for (const double each : *known) {
    if (!(each >= least && each <= most)) return std::nullopt;
    elements.push_back(1.0F / static_cast<float>(each));
  }
  const Extents& extents = node.graph().value(scale).extents;
  return node.constant("inverse", DType::f32, HostTensor(onnx::TensorProto::FLOAT, extents, std::move(elements)));
}

int64_t block_of(const Node& node) {
  const int64_t block = node.attributes().integer("block_size", 0);
  if (block < 0) node.fail(fmt::format("block_size is {}, expected 0 or more", block));
  return block;
}

/// `code` of x, its scale, its zero point where there is one, and the inverse of the scale if it is given.
ValueId scaled(const Node& node, std::string_view code, DType y, std::optional<ValueId> inverse = {}) {
  const int64_t block = block_of(node);
  const size_t axis = block > 0 ? node.axis(node.attributes().integer("axis", 1), node.rank()) : axis_of(node);
  const auto tensor = [&](int input) {
    return block > 0 ? of_elements(node, input, axis, block) : along_axis(node, node.operand(input), axis, node.rank());
  };
  std::vector<NamedValue> tensors = {{"scale", tensor(1)}};
  if (node.has(2)) tensors.push_back({"zero", tensor(2)});
  if (inverse) tensors.push_back({"inverse", along_axis(node, *inverse, axis, node.rank())});
  return expression_within(node, code, node.operand(0), tensors, y);
}

/// rint(x / scale), and `zero` more. A division takes branches; where the inverse is known, two corrections round the
/// quotient correctly (Markstein, IA-64 and Elementary Functions, 8.1). Infinities and what saturates need none.
ValueId quantised(const Node& node, std::string_view zero, DType y) {
  const auto inverse = block_of(node) == 0 ? inverses(node, node.operand(1)) : std::nullopt;
  if (!inverse) return scaled(node, fmt::format("rintf(acc / scale){}", zero), y);
  return scaled(node,
                fmt::format("const float first = acc * inverse;\n"
                            "    const float second = fmaf(fmaf(-first, scale, acc), inverse, first);\n"
                            "    const float third = fmaf(fmaf(-second, scale, acc), inverse, second);\n"
                            "    return rintf(fabsf(first) < 1048576.0f ? third : first){};",
                            zero),
                y, inverse);
}

/// The type that a node gives, by its attribute where it has one.
int32_t output_type(const Node& node, int32_t fallback) {
  const int32_t type = node.type_attribute("output_dtype", onnx::TensorProto::UNDEFINED);
  return type == onnx::TensorProto::UNDEFINED ? fallback : type;
}

}  // namespace

void read_dequantize(Node& node) {
  node.require_inputs(2, 3);
  const int32_t type = output_type(node, node.element_type(1));
  const DType x = node.dtype(0), y = node.values().storage_of(type);
  const bool has_zero = node.has(2) && !is_known_to_be(node, 2, 0);
  // Calls take factors of 8 bits, and those that are floating-point numbers have no zero points.
  if (size_of(x) != 1 || (is_floating(x) && has_zero) || node.attributes().integer("block_size", 0) != 0) {
    return node.give_as(type, scaled(node, node.has(2) ? "(acc - zero) * scale" : "acc * scale", y));
  }
  if (node.has(2)) require_type_of(node, 2, 0);
  // Zero points of -128 are those of values behind a Relu: without them nothing has to be taken off.
  const bool turns = has_zero && node.as_unsigned(0) && is_known_to_be(node, 2, -128);
  const auto zero = has_zero && !turns ? std::optional(node.operand(2)) : std::nullopt;
  const bool is_uniform =
      graph::count_elements(node.extents(1)) == 1 && (!zero || graph::count_elements(node.extents(2)) == 1);
  const ValueId integers = turns ? *node.as_unsigned(0) : node.operand(0);
  const Dequantised from{integers, node.operand(1), zero, axis_of(node), is_uniform};
  node.give_dequantised(type, dequantised(node, from, y), from);
}

void read_quantize(Node& node) {
  node.require_inputs(2, 3);
  const int32_t type = output_type(node, node.has(2) ? node.element_type(2) : int32_t{onnx::TensorProto::UINT8});
  const DType dtype = node.values().storage_of(type);
  if (is_floating(dtype)) {
    if (size_of(dtype) != 1) refuse(fmt::format("it makes elements of type {}", type_name(type)));
    if (node.attributes().integer("saturate", 1) == 0) refuse("its results do not saturate");
    return node.give_as(type, scaled(node, node.has(2) ? "acc / scale + zero" : "acc / scale", dtype));
  }
  if (dtype == DType::i8 && node.has(2) && is_known_to_be(node, 2, -128)) {
    const ValueId as_unsigned = quantised(node, "", DType::u8);
    return node.give_signed(expression(node, "acc - 128.0f", as_unsigned, {}, DType::i8), as_unsigned);
  }
  const ValueId wide = quantised(node, node.has(2) ? " + zero" : "", dtype == DType::i32 ? DType::f32 : dtype);
  if (dtype != DType::i32) return node.give_as(type, wide);
  const IntegerRange range = range_of(type);
  if (range.largest - range.least >= int64_t{1} << 16) {
    refuse(fmt::format("it makes elements of type {}", type_name(type)));
  }
  const graph::Numbers ends = {{"least", static_cast<float>(range.least)}, {"most", static_cast<float>(range.largest)}};
  node.give_as(type, expression(node, "clamp(acc, least, most)", wide, {}, DType::i32, ends));
}

/// The scale takes x's range, and 0, to 0 ... 255, as in ONNX Runtime: 1 where x is 0 everywhere.
void read_dynamic_quantize(Node& node) {
  node.require_inputs(1, 1);
  graph::Graph& graph = node.graph();
  if (graph::count_elements(node.extents(0)) == 0) refuse("its input has no elements");
  const ValueId x = at_least_1d(graph, node.operand(0));
  std::vector<size_t> axes(graph.value(x).extents.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  const auto extreme = [&](ReduceMode mode) {
    return graph.reshape(reduction(node, x, axes, mode, false, DType::f32).front(), {});
  };
  const ValueId least = extreme(ReduceMode::min), most = extreme(ReduceMode::max);
  const ValueId scale = expression(node,
                                   "fmaxf(acc, 0.0f) == fminf(least, 0.0f)\n"
                                   "    ? 1.0f\n"
                                   "    : (fmaxf(acc, 0.0f) - fminf(least, 0.0f)) / 255.0f",
                                   most, {{"least", least}}, DType::f32);
  const ValueId zero =
      expression(node, "rintf(clamp(-fminf(acc, 0.0f) / scale, 0.0f, 255.0f))", least, {{"scale", scale}}, DType::u8);
  const ValueId y =
      expression(node, "rintf(acc / scale) + zero", node.operand(0), {{"scale", scale}, {"zero", zero}}, DType::u8);
  node.give_as(onnx::TensorProto::UINT8, y, 0);
  node.give_as(onnx::TensorProto::FLOAT, converted(node, scale, node.values().storage_of(onnx::TensorProto::FLOAT)), 1);
  node.give_as(onnx::TensorProto::UINT8, zero, 2);
}

}  // namespace kiln::onnx_frontend
