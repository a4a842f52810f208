#include "onnx/reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// The axes, ascending. No axes: all of them, or none where the node says so.
std::vector<size_t> axes_of(const Node& node, size_t rank) {
  const int64_t since = node.type() == "ReduceSum" ? 13 : 18;
  std::vector<size_t> axes = node.axes(node.list("axes", 1, since, {}), rank);
  const bool none_means_none = node.attributes().integer("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !none_means_none) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), size_t{0});
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// The extents of a result: without the axes, or with 1 in their place.
Extents reduced(const Extents& x, const std::vector<size_t>& axes, bool keep) {
  Extents result;
  for (size_t d = 0; d < x.size(); ++d) {
    const bool is_axis = std::count(axes.begin(), axes.end(), d) > 0;
    if (!is_axis || keep) result.push_back(is_axis ? 1 : x[d]);
  }
  return result;
}

}  // namespace

std::vector<ValueId> reduction(const Node& node, ValueId x, const std::vector<size_t>& axes, ReduceMode mode,
                               bool wants_indices, std::optional<DType> y) {
  constexpr size_t most_dimensions = 5;
  graph::Graph& graph = node.graph();
  const Extents whole = graph.value(x).extents;
  Extents extents = whole;
  std::vector<int64_t> called(axes.begin(), axes.end());
  if (whole.size() > most_dimensions) {
    extents.clear();
    called.clear();
    bool was_axis = false;
    for (size_t d = 0; d < whole.size(); ++d) {
      const bool is_axis = std::count(axes.begin(), axes.end(), d) > 0;
      if (d > 0 && is_axis == was_axis) {
        extents.back() *= whole[d];
      } else {
        if (is_axis) called.push_back(std::ssize(extents));
        extents.push_back(whole[d]);
      }
      was_axis = is_axis;
    }
    if (extents.size() > most_dimensions) {
      refuse(fmt::format("its input has {} dimensions, and up to {} are covered", whole.size(), most_dimensions));
    }
  }
  const ValueId value = graph.reshape(x, extents);
  Reduce reduce;
  reduce.x = spec_of(graph, value);
  reduce.axes = called;
  reduce.mode = mode;
  Extents result = extents;
  for (const int64_t axis : called) result[static_cast<size_t>(axis)] = 1;
  if (y) reduce.y = spec_of(*y, result);
  if (wants_indices) reduce.indices = spec_of(DType::i32, result);
  std::vector<ValueId> results;
  for (const graph::Operand& output : graph.call(reduce.request(), {{"x", value}})) {
    results.push_back(graph.reshape(output.value, reduced(whole, axes, true)));
  }
  return results;
}

namespace {

/// max + log(sum(exp(x - max))), which no exponential overflows. A row of which -inf or inf is the largest gives that.
ValueId log_sum_exp(const Node& node, ValueId x, const std::vector<size_t>& axes) {
  const DType dtype = node.dtype(0);
  const ValueId max = reduction(node, x, axes, ReduceMode::max).front();
  const ValueId exponentials =
      expression(node, "isinf(greatest) ? (acc == greatest ? 1.0f : 0.0f) : expf(acc - greatest)", x,
                 {{"greatest", max}}, DType::f32);
  const ValueId sum = reduction(node, exponentials, axes, ReduceMode::add).front();
  return expression(node, "logf(acc) + greatest", sum, {{"greatest", max}}, dtype);
}

}  // namespace

void read_reduce(Node& node) {
  using enum ReduceMode;
  static const std::map<std::string, ReduceMode> modes = {
      {"ReduceSum", add},  {"ReduceProd", mul}, {"ReduceMin", min},       {"ReduceMax", max},   {"ReduceMean", mean},
      {"ReduceL1", norm1}, {"ReduceL2", norm2}, {"ReduceSumSquare", add}, {"ReduceLogSum", add}};
  node.require_inputs(1, 2);
  const std::string& type = node.type();
  const std::vector<size_t> axes = axes_of(node, node.rank());
  const Extents result = reduced(node.extents(0), axes, node.attributes().integer("keepdims", 1) != 0);
  ValueId value = node.operand(0);
  if (axes.empty() && node.rank() > 0 && type != "ReduceSum")
    refuse("it reduces nothing, and opsets differ in what that gives");
  if (axes.empty() && type == "ReduceSum") return node.give(value);
  if (node.rank() == 0) refuse("its input has no dimensions");
  if (type == "ReduceLogSumExp") return node.give(node.graph().reshape(log_sum_exp(node, value, axes), result));
  if (type == "ReduceSumSquare") value = tensor_op(node, TensorOpMode::mul, {value, value}, node.dtype(0));
  value = reduction(node, value, axes, modes.at(type)).front();
  if (type == "ReduceLogSum") value = tensor_op(node, TensorOpMode::log, {value}, node.dtype(0));
  node.give(node.graph().reshape(value, result));
}

void read_arg(Node& node) {
  node.require_inputs(1, 1);
  const size_t axis = node.axis(node.attributes().integer("axis", 0), node.rank());
  const ReduceMode mode = node.type() == "ArgMax" ? ReduceMode::max : ReduceMode::min;
  const int64_t extent = node.extents(0)[axis];
  const bool takes_last = node.attributes().integer("select_last_index", 0) != 0;  // of equal elements
  ValueId x = node.operand(0);
  if (takes_last) {  // the first one from the end
    std::vector<int64_t> backwards = node.table(extent);
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    x = taken(node, x, axis, backwards);
  }
  ValueId indices = reduction(node, x, {axis}, mode, true).at(1);
  if (takes_last) {
    indices = expression(node, "last - acc", indices, {}, DType::i32, {{"last", static_cast<float>(extent - 1)}});
  }
  const bool keep = node.attributes().integer("keepdims", 1) != 0;
  node.give_as(onnx::TensorProto::INT64, node.graph().reshape(indices, reduced(node.extents(0), {axis}, keep)));
}

/// x over its norm along one axis; 0 where that is 0.
void read_lp_norm(Node& node) {
  node.require_inputs(1, 1);
  const size_t axis = node.axis(node.attributes().integer("axis", -1), node.rank());
  const int64_t p = node.attributes().integer("p", 2);
  if (p != 1 && p != 2) node.fail(fmt::format("p is {}, expected 1 or 2", p));
  const ValueId norm = reduction(node, node.operand(0), {axis}, p == 1 ? ReduceMode::norm1 : ReduceMode::norm2).front();
  node.give(expression(node, "norm == 0.0f ? 0.0f : acc / norm", node.operand(0), {{"norm", norm}}, node.dtype(0)));
}

}  // namespace kiln::onnx_frontend
