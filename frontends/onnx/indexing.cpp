// Elements by their positions: parts of a tensor, one behind another, where the positions are known and few.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kiln/generator/operations/gather.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// Positions that ascend evenly.
struct Run {
  int64_t first = 0, step = 1, count = 0;
};

/// The list as such runs, each as long as can be.
std::vector<Run> runs_of(const std::vector<int64_t>& positions) {
  std::vector<Run> runs;
  for (const int64_t position : positions) {
    Run* const last = runs.empty() ? nullptr : &runs.back();
    if (last != nullptr && last->count == 1 && position > last->first) {
      last->step = position - last->first;
      last->count = 2;
    } else if (last != nullptr && last->count > 1 && position == last->first + last->step * last->count) {
      ++last->count;
    } else {
      runs.push_back({position, 1, 1});
    }
  }
  return runs;
}

constexpr size_t most_parts = 16;  // each is a copy, and more are a call of gather

/// y = x at `indices` along the axis; y's extents are those of indices, or of x where indices repeat.
ValueId gathered(const Node& node, ValueId x, ValueId indices, size_t axis) {
  graph::Graph& graph = node.graph();
  Gather gather;
  gather.x = spec_of(graph, x);
  gather.indices = spec_of(graph, indices);
  gather.axis = static_cast<int64_t>(axis);
  Extents extents = graph.value(x).extents;
  const Extents& at = graph.value(indices).extents;
  for (size_t d = 0; d < extents.size(); ++d) extents[d] = d == axis ? at[d] : std::max(extents[d], at[d]);
  gather.y = spec_of(graph.value(x).dtype, extents);
  return graph.call(gather.request(), {{"x", x}, {"indices", indices}}).front().value;
}

/// x as three dimensions, of which the middle one is the axis.
ValueId around_axis(const Node& node, ValueId x, size_t axis) {
  const Extents& own = node.graph().value(x).extents;
  const auto at = own.begin() + static_cast<std::ptrdiff_t>(axis);
  return node.graph().reshape(
      x, {graph::count_elements(Extents(own.begin(), at)), *at, graph::count_elements(Extents(at + 1, own.end()))});
}

/// The elements of `list`, on the device.
ValueId constant_of(const Node& node, const std::vector<int64_t>& list) {
  const HostTensor tensor{onnx::TensorProto::INT64, {std::ssize(list)}, list, {}};
  return node.graph().constant("positions", DType::i32, tensor.extents, stored_as(DType::i32, tensor));
}

/// numpy.take(): the elements of x at the list `indices` along the axis.
ValueId taken_at(const Node& node, ValueId x, size_t axis, ValueId indices) {
  graph::Graph& graph = node.graph();
  Extents result = graph.value(x).extents;
  result[axis] = graph::count_elements(graph.value(indices).extents);
  const ValueId list = graph.reshape(indices, {1, result[axis], 1});
  return graph.reshape(gathered(node, around_axis(node, x, axis), list, 1), result);
}

}  // namespace

ValueId taken(const Node& node, ValueId x, size_t axis, const std::vector<int64_t>& positions) {
  graph::Graph& graph = node.graph();
  const std::vector<Run> runs = runs_of(positions);
  if (runs.empty()) refuse("its result has no elements");
  if (runs.size() > most_parts) return taken_at(node, x, axis, constant_of(node, positions));
  std::vector<ValueId> parts;
  for (const Run& run : runs) {
    Extents extents = graph.value(x).extents, begin(extents.size(), 0), step(extents.size(), 1);
    extents[axis] = run.count;
    begin[axis] = run.first;
    step[axis] = run.step;
    parts.push_back(graph.slice(x, begin, extents, step));
  }
  return parts.size() == 1 ? parts.front() : graph.concat(std::move(parts), axis);
}

void read_gather(Node& node) {
  node.require_inputs(2, 2);
  graph::Graph& graph = node.graph();
  const Extents& x = node.extents(0);
  const size_t axis = node.axis(node.attributes().integer("axis", 0), x.size());
  Extents result(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(result.end(), node.extents(1).begin(), node.extents(1).end());
  result.insert(result.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  if (node.host(1) == nullptr) {
    return node.give(graph.reshape(taken_at(node, node.operand(0), axis, node.operand(1)), result));
  }
  std::vector<int64_t> positions = node.integers(1, "indices");
  for (int64_t& position : positions) {
    if (position < -x[axis] || position >= x[axis]) node.fail(fmt::format("takes element {} of {}", position, x[axis]));
    position += position < 0 ? x[axis] : 0;
  }
  node.give(graph.reshape(taken(node, node.operand(0), axis, positions), result));
}

/// numpy.take_along_axis(), but that indices may be fewer along any dimension: then x is its first part there.
void read_gather_elements(Node& node) {
  node.require_inputs(2, 2);
  graph::Graph& graph = node.graph();
  const Extents &x = node.extents(0), &indices = node.extents(1);
  const size_t axis = node.axis(node.attributes().integer("axis", 0), x.size());
  if (indices.size() != x.size()) {
    node.fail(fmt::format("its indices have {} dimensions, expected {}", indices.size(), x.size()));
  }
  if (x.size() > 5) refuse(fmt::format("its input has {} dimensions, and up to 5 are covered", x.size()));
  Extents part = indices;
  part[axis] = x[axis];
  for (size_t d = 0; d < x.size(); ++d) {
    if (part[d] > x[d]) node.fail(fmt::format("has {} indices along dimension {} of {} elements", part[d], d, x[d]));
  }
  const ValueId first = graph.slice(node.operand(0), Extents(x.size(), 0), part, Extents(x.size(), 1));
  node.give(gathered(node, first, node.operand(1), axis));
}

}  // namespace kiln::onnx_frontend
