// 8-bit integers with a scale and a zero point. Sums of products are f32, which holds them exactly up to 2^24.
#include <fmt/format.h>

#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// An input with one element, or one for each element along an axis of a tensor of `rank` dimensions.
ValueId along_axis(const Node& node, int input, size_t axis, size_t rank) {
  if (node.rank(input) == 0) return node.operand(input);
  if (rank == 0) return node.graph().reshape(node.operand(input), {});
  if (node.rank(input) > 1)
    refuse(fmt::format("input {} has {} dimensions, and 0 or 1 are covered", input, node.rank(input)));
  Extents extents(rank, 1);
  extents[axis] = node.extents(input)[0];
  return node.graph().reshape(node.operand(input), extents);
}

/// The axis that scales count along; of no use where they have one element.
size_t axis_of(const Node& node) {
  const size_t rank = node.rank();
  if (graph::count_elements(node.extents(1)) == 1) return 0;
  return node.axis(node.attributes().integer("axis", 1), rank);
}

/// `code` of x, its scale, and its zero point where there is one.
ValueId scaled(const Node& node, const char* with_zero, const char* without, DType y) {
  const size_t axis = axis_of(node), rank = node.rank();
  std::vector<NamedValue> tensors = {{"scale", along_axis(node, 1, axis, rank)}};
  if (node.has(2)) tensors.push_back({"zero", along_axis(node, 2, axis, rank)});
  return expression(node, node.has(2) ? with_zero : without, node.operand(0), tensors, y);
}

}  // namespace

void read_dequantize(Node& node) {
  node.require_inputs(2, 3);
  if (node.attributes().integer("block_size", 0) != 0)
    refuse("its scales are of blocks, and those of a channel are covered");
  node.give_as(node.element_type(1), scaled(node, "(acc - zero) * scale", "acc * scale", node.dtype(1)));
}

void read_quantize(Node& node) {
  node.require_inputs(2, 3);
  if (node.attributes().integer("block_size", 0) != 0)
    refuse("its scales are of blocks, and those of a channel are covered");
  const int32_t type = node.has(2) ? node.element_type(2) : int32_t{onnx::TensorProto::UINT8};
  const DType dtype = node.values().storage_of(type);
  if (dtype != DType::u8 && dtype != DType::i8) refuse(fmt::format("it makes elements of type {}", type_name(type)));
  node.give_as(type, scaled(node, "rintf(acc / scale) + zero", "rintf(acc / scale)", dtype));
}

}  // namespace kiln::onnx_frontend
