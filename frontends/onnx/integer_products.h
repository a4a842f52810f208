// Convolutions and matrix products of elements of 8 bits, integers with zero points, for the readers of nodes that are
// made of them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "onnx/node.h"
#include "onnx/pointwise.h"
#include "onnx/window.h"

namespace kiln::onnx_frontend {

/// A factor of 8-bit integers, which stand for the numbers (value - zero), or of floating-point numbers of 8 bits.
struct IntegerFactor {
  ValueId value;
  /// Nothing: 0. One element, or, of w one for each filter, of a one for each row, of b one for each column.
  std::optional<ValueId> zero;
};

/// A factor among the inputs of a node, and its zero point where the node has one. Throws Error(parse_error) for a zero
/// point of another type, Refusal for elements that are no 8-bit integers.
IntegerFactor integer_factor(const Node& node, int value, int zero);

/// Throws Error(parse_error) if a zero point, input `zero`, is of another type than input `value`.
void require_type_of(const Node& node, int zero, int value);

/// Whether all elements of an input are known to be `number`.
bool is_known_to_be(const Node& node, int input, double number);

/// Sums of a convolution as ONNX's Conv has it, in f32: exact as long as they are below 2^24 before and after zero
/// points are taken off. Padding stands for 0.
ValueId integer_convolution(const Node& node, const IntegerFactor& x, const IntegerFactor& w, const Window& window,
                            int64_t groups);

/// As integer_convolution(), of a product as matrix_product() has it.
ValueId integer_matrix_product(const Node& node, const IntegerFactor& a, const IntegerFactor& b);

/// The elements of a constant of the graph; nothing where they are computed, or too many for the host.
std::optional<std::vector<double>> known_elements(const Node& node, ValueId value);

/// a * b, or a * b / c, of scales, rounded to f32 after each step, one element for each of the longest one.
ValueId combined_scale(const Node& node, ValueId a, ValueId b, std::optional<ValueId> c = {});

/// rint((sums + bias) * scale) + zero, saturated to the type of zero, which is input `zero` of the node. Both count
/// along dimension `axis` where they have more than one element.
ValueId requantised(const Node& node, ValueId sums, ValueId scale, int zero, size_t axis,
                    std::optional<ValueId> bias = {});

/// `value` of one element, or of one for each along dimension `axis` of `rank`, with extents that repeat. Throws
/// Error(parse_error) if it has more dimensions.
ValueId along_axis(const Node& node, ValueId value, size_t axis, size_t rank);

/// As expression(). Throws Error(parse_error) if its tensors have more elements than x along any dimension.
ValueId expression_within(const Node& node, std::string_view code, ValueId x, const std::vector<NamedValue>& tensors,
                          DType y);

/// Result of a DequantizeLinear of integers.
ValueId dequantised(const Node& node, const Dequantised& from, DType y);

/// The result of a Conv, a MatMul or a Gemm whose factors both come from a DequantizeLinear, by its integers; nothing
/// for others, and where scales do not go along with sums. `bias`: of K elements; repeats to the result's.
std::optional<ValueId> dequantised_convolution(const Node& node, const Window& window, std::optional<ValueId> bias);
std::optional<ValueId> dequantised_product(const Node& node, std::optional<ValueId> bias = {});

}  // namespace kiln::onnx_frontend
