// Nodes that compare positions: triangles, one-hot vectors.
#include <fmt/format.h>

#include <numeric>

#include "onnx/pointwise.h"
#include "onnx/readers.h"
#include "onnx/reductions.h"

namespace kiln::onnx_frontend {
namespace {

/// 1 where `is_one` says so of a row and a column, and 0 elsewhere.
template <typename IsOne>
ValueId matrix_of_flags(const Node& node, const char* name, DType dtype, int64_t rows, int64_t columns,
                        const IsOne& is_one) {
  HostTensor flags(node.budget(), onnx::TensorProto::INT64, {rows, columns});
  size_t i = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) flags.integers()[i++] = is_one(r, c) ? 1 : 0;
  }
  return node.constant(name, dtype, flags);
}

}  // namespace

ValueId positions(const Node& node, int64_t count, size_t axis, size_t rank) {
  Extents extents(rank, 1);
  extents[axis] = count;
  HostTensor numbers(node.budget(), onnx::TensorProto::INT64, extents);
  std::iota(numbers.integers().begin(), numbers.integers().end(), 0);
  return node.constant("positions", DType::i32, numbers);
}

/// Keeps one triangle of each matrix, and makes the rest zero.
void read_trilu(Node& node) {
  node.require_inputs(1, 2);
  const Extents& x = node.extents(0);
  if (x.size() < 2) node.fail(fmt::format("its input has {} dimensions, expected 2 or more", x.size()));
  const int64_t rows = x[x.size() - 2], columns = x.back();
  const int64_t diagonal = node.has(1) ? node.integer(1, "diagonal") : 0;
  const bool keeps_upper = node.attributes().integer("upper", 1) != 0;
  const ValueId kept = matrix_of_flags(node, "triangle", DType::u8, rows, columns, [&](int64_t r, int64_t c) {
    return keeps_upper ? c - r >= diagonal : c - r <= diagonal;
  });
  const DType dtype = node.dtype(0);
  node.give(tensor_op(node, TensorOpMode::select, {kept, node.operand(0), constant(node, dtype, 0)}, dtype));
}

void read_one_hot(Node& node) {
  node.require_inputs(3, 3);
  graph::Graph& graph = node.graph();
  const int64_t depth = node.integer(1, "depth");
  if (depth < 1) node.fail(fmt::format("its depth is {}, expected 1 or more", depth));
  Extents extents = node.extents(0);
  const size_t axis = node.axis(node.attributes().integer("axis", -1), extents.size() + 1);
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  const ValueId indices = graph.reshape(node.operand(0), extents);
  if (node.extents(2) != Extents{2}) node.fail("its third input does not hold two values");
  const auto value = [&](int64_t at) { return graph.slice(node.operand(2), {at}, {1}, {1}); };
  const ValueId result =
      expression(node, "(acc < 0.0f ? acc + depth : acc) == position ? on : off", indices,
                 {{"position", positions(node, depth, axis, extents.size())}, {"on", value(1)}, {"off", value(0)}},
                 node.dtype(2), {{"depth", static_cast<float>(depth)}});
  node.give_as(node.element_type(2), result);
}

/// 1 at the first of the largest elements, and 0 elsewhere.
void read_hardmax(Node& node) {
  node.require_inputs(1, 1);
  constexpr int64_t first_with_one_axis = 13;
  const bool one_axis = node.opset() >= first_with_one_axis;
  graph::Graph& graph = node.graph();
  const Extents x = node.extents(0);
  size_t axis = node.axis(node.attributes().integer("axis", one_axis ? -1 : 1), x.size());
  ValueId value = node.operand(0);
  if (!one_axis) {  // the dimensions from it on are one
    const auto split = x.begin() + static_cast<std::ptrdiff_t>(axis);
    value = graph.reshape(
        value, {graph::count_elements(Extents(x.begin(), split)), graph::count_elements(Extents(split, x.end()))});
    axis = 1;
  }
  const Extents extents = graph.value(value).extents;
  const ValueId largest = reduction(node, value, {axis}, ReduceMode::max, true).at(1);
  const ValueId result =
      expression(node, "acc == position ? 1.0f : 0.0f", largest,
                 {{"position", positions(node, extents[axis], axis, extents.size())}}, node.dtype(0));
  node.give(graph.reshape(result, x));
}

/// A matrix with 1 on one diagonal.
void read_eye_like(Node& node) {
  node.require_inputs(1, 1);
  if (node.rank() != 2) node.fail(fmt::format("its input has {} dimensions, expected 2", node.rank()));
  const int32_t type = node.type_attribute("dtype", node.element_type(0));
  const int64_t rows = node.extents(0)[0], columns = node.extents(0)[1], diagonal = node.attributes().integer("k", 0);
  const DType dtype = node.values().storage_of(type);
  node.give_as(type, matrix_of_flags(node, "diagonal", dtype, rows, columns,
                                     [&](int64_t r, int64_t c) { return c - r == diagonal; }));
}

}  // namespace kiln::onnx_frontend
