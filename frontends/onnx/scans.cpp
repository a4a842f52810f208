// Sums of all elements up to each: CumSum.
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

ValueId slice_of(graph::Graph& graph, ValueId value, size_t d, int64_t begin, int64_t end) {
  Extents extents = graph.value(value).extents, first(extents.size(), 0);
  first[d] = begin;
  extents[d] = end - begin;
  return graph.slice(value, first, extents, Extents(extents.size(), 1));
}

}  // namespace

/// Each element becomes the sum of twice as many in each step (Hillis and Steele).
void read_cum_sum(Node& node) {
  node.require_inputs(2, 2);
  graph::Graph& graph = node.graph();
  const size_t d = node.axis(node.integer(1, "axis"), node.rank());
  const bool is_reverse = node.attributes().integer("reverse", 0) != 0;
  const int64_t n = node.extents(0)[d];
  const DType dtype = node.dtype(0);
  ValueId sums = node.operand(0);
  const auto joined = [&](ValueId one, ValueId other) {
    return graph.concat(is_reverse ? std::vector{other, one} : std::vector{one, other}, d);
  };
  for (int64_t distance = 1; distance < n; distance *= 2) {
    const ValueId first = slice_of(graph, sums, d, 0, n - distance), second = slice_of(graph, sums, d, distance, n);
    const ValueId own = is_reverse ? slice_of(graph, sums, d, n - distance, n) : slice_of(graph, sums, d, 0, distance);
    sums = joined(own, tensor_op(node, TensorOpMode::add, {first, second}, dtype));
  }
  if (node.attributes().integer("exclusive", 0) != 0 && n > 0) {
    Extents one = node.extents(0);
    one[d] = 1;
    const ValueId zero = graph.repeat(with_rank(graph, constant(node, dtype, 0), one.size()), one);
    sums = joined(zero, is_reverse ? slice_of(graph, sums, d, 1, n) : slice_of(graph, sums, d, 0, n - 1));
  }
  node.give(sums);
}

}  // namespace kiln::onnx_frontend
