#include "onnx/products.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/generator/operations/gemm.h"
#include "onnx/integer_products.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

ValueId matrix_of(const Node& node, int input, const char* transposition) {
  if (node.rank(input) != 2) {
    node.fail(fmt::format("input {} is {}, expected a matrix", input, fmt::join(node.extents(input), "x")));
  }
  const bool is_transposed = node.attributes().integer(transposition, 0) != 0;
  return is_transposed ? node.graph().permute(node.operand(input), {1, 0}) : node.operand(input);
}

/// The extents of batch dimensions together.
int64_t batches(const Extents& extents) {
  return graph::count_elements(Extents(extents.begin(), extents.end() - 2));
}

}  // namespace

ValueId product(const Node& node, ValueId a, ValueId b, const graph::Numbers& numbers, std::optional<ValueId> bias,
                std::optional<DType> result) {
  graph::Graph& graph = node.graph();
  Gemm gemm;
  gemm.a = spec_of(graph, a);
  gemm.b = spec_of(graph, b);
  Extents c = gemm.a.extents;
  for (size_t d = 0; d + 2 < c.size(); ++d) c[d] = std::max(c[d], gemm.b.extents[d]);
  c.back() = gemm.b.extents.back();
  gemm.c = spec_of(result.value_or(gemm.a.dtype), c);
  std::vector<graph::Operand> inputs{{"a", a}, {"b", b}};
  if (bias) {
    gemm.epilogue.push_back(EpilogueStage::bias);
    gemm.bias = spec_of(graph, *bias);
    inputs.push_back({"bias", *bias});
  }
  return graph.call(gemm.request(), std::move(inputs), numbers).front().value;
}

ValueId matrix_product(const Node& node, ValueId a, ValueId b, std::optional<DType> c) {
  graph::Graph& graph = node.graph();
  const Extents x = graph.value(a).extents, w = graph.value(b).extents;
  if (x.empty() || w.empty()) node.fail("an input has no dimensions");
  // Vectors are matrices of one row, or one column.
  Extents left = x, right = w;
  if (x.size() == 1) left.insert(left.begin(), 1);
  if (w.size() == 1) right.push_back(1);
  if (left.back() != right[right.size() - 2]) {
    node.fail(fmt::format("its inputs are {} and {}, whose matrices do not fit", fmt::join(x, "x"), fmt::join(w, "x")));
  }
  const int64_t m = left[left.size() - 2], n = right.back();
  const Extents batch =
      broadcast(node, {Extents(left.begin(), left.end() - 2), Extents(right.begin(), right.end() - 2)});
  Extents result = batch;
  if (x.size() > 1) result.push_back(m);
  if (w.size() > 1) result.push_back(n);
  a = graph.reshape(a, left);
  b = graph.reshape(b, right);
  if (batches(right) == 1) {  // one product of all rows
    a = graph.reshape(a, {batches(left) * m, left.back()});
    b = graph.reshape(b, {right[right.size() - 2], n});
    return graph.reshape(product(node, a, b, {}, {}, c), result);
  }
  size_t rank = std::max(left.size(), right.size());
  a = with_rank(graph, a, rank);
  b = with_rank(graph, b, rank);
  if (rank > 5) {  // batch dimensions that are one, where none repeats
    if (batches(left) != batches(right)) refuse(fmt::format("it has {} batch dimensions, and 3 are covered", rank - 2));
    a = graph.reshape(a, {batches(left), m, left.back()});
    b = graph.reshape(b, {batches(right), left.back(), n});
  }
  return graph.reshape(product(node, a, b, {}, {}, c), result);
}

void read_gemm(Node& node) {
  node.require_inputs(2, 3);
  if (node.is_integer(0)) refuse("its elements are integers");
  const ValueId a = matrix_of(node, 0, "transA"), b = matrix_of(node, 1, "transB");
  const int64_t m = node.graph().value(a).extents[0], n = node.graph().value(b).extents[1];
  if (node.graph().value(a).extents[1] != node.graph().value(b).extents[0]) node.fail("its matrices do not fit");
  const auto alpha = static_cast<float>(node.attributes().real("alpha").value_or(1));
  const auto beta = static_cast<float>(node.attributes().real("beta").value_or(1));
  graph::Numbers numbers;
  if (alpha != 1) numbers.emplace_back("alpha", alpha);
  if (!node.has(2) || beta == 0) {
    const auto y = alpha == 1 ? dequantised_product(node) : std::nullopt;
    return node.give(y ? *y : product(node, a, b, numbers));
  }
  Extents c = node.extents(2);
  if (broadcast(node, {c, {m, n}}) != Extents{m, n}) {
    node.fail(fmt::format("the third input is {}, which does not repeat to {}x{}", fmt::join(c, "x"), m, n));
  }
  if (alpha == 1 && beta == 1) {
    if (const auto y = dequantised_product(node, node.operand(2))) return node.give(*y);
  }
  if (beta == 1 && graph::count_elements(c) == n && !c.empty() && c.back() == n) {
    return node.give(product(node, a, b, numbers, node.graph().reshape(node.operand(2), {n})));
  }
  const ValueId scaled = beta == 1
                             ? node.operand(2)
                             : expression(node, "acc * factor", node.operand(2), {}, node.dtype(2), {{"factor", beta}});
  node.give(tensor_op(node, TensorOpMode::add, {product(node, a, b, numbers), scaled}, node.dtype(0)));
}

void read_matmul(Node& node) {
  node.require_inputs(2, 2);
  if (const auto y = dequantised_product(node)) return node.give(*y);
  if (node.is_integer(0)) refuse("its elements are integers");
  node.give(matrix_product(node, node.operand(0), node.operand(1)));
}

void read_matmul_integer(Node& node) {
  node.require_inputs(2, 4);
  const ValueId sums = integer_matrix_product(node, integer_factor(node, 0, 2), integer_factor(node, 1, 3));
  node.give_integers(converted(node, sums, DType::i32), sums);
}

/// Inputs: a, b and the result, each with its scale and zero point, of which the result has nothing else.
void read_qlinear_matmul(Node& node) {
  node.require_inputs(8, 8);
  const ValueId sums = integer_matrix_product(node, integer_factor(node, 0, 2), integer_factor(node, 3, 5));
  const size_t rank = node.graph().value(sums).extents.size();
  const size_t rows = rank > 1 ? rank - 2 : 0, columns = rank > 0 ? rank - 1 : 0;
  const auto is_one = [&](int input) { return graph::count_elements(node.extents(input)) == 1; };
  const auto scale_of = [&](int input, size_t axis) {
    return node.rank(input) > 1 ? node.operand(input) : along_axis(node, node.operand(input), axis, rank);
  };
  const ValueId scale =
      is_one(1) && is_one(6) && node.rank(4) < 2
          ? along_axis(node, combined_scale(node, node.operand(1), node.operand(4), node.operand(6)), columns, rank)
          : combined_scale(node, scale_of(1, rows), scale_of(4, columns), scale_of(6, rows));
  node.give_as(node.element_type(7), requantised(node, sums, scale, 7, rows));
}

}  // namespace kiln::onnx_frontend
