// Elements by their positions: parts of a tensor, one behind another, where the positions are known and few.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/base/printable.h"
#include "kiln/generator/operations/gather.h"
#include "kiln/generator/operations/scatter.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// Positions that ascend evenly.
struct Run {
  int64_t first = 0, step = 1, count = 0;
};

/// The list as such runs, each as long as can be; of more than `most` the first `most` + 1.
std::vector<Run> runs_of(std::span<const int64_t> positions, size_t most) {
  std::vector<Run> runs;
  for (const int64_t position : positions) {
    if (runs.size() > most) break;
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

/// The elements of x at those positions along the axis.
ValueId part(graph::Graph& graph, ValueId x, size_t axis, const Run& run) {
  Extents extents = graph.value(x).extents, begin(extents.size(), 0), step(extents.size(), 1);
  extents[axis] = run.count;
  begin[axis] = run.first;
  step[axis] = run.step;
  return graph.slice(x, std::move(begin), std::move(extents), std::move(step));
}

// Each part is a copy. More of them are a call of gather, for which updates and the rest are copied side by side first.
constexpr size_t most_parts = 2, most_parts_of_updates = 16;

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
  const HostTensor tensor(onnx::TensorProto::INT64, {std::ssize(list)}, list);
  return node.constant("positions", DType::i32, tensor);
}

/// numpy.take(): the elements of x at the list `indices` along the axis.
ValueId taken_at(const Node& node, ValueId x, size_t axis, ValueId indices) {
  graph::Graph& graph = node.graph();
  Extents result = graph.value(x).extents;
  result[axis] = graph::count_elements(graph.value(indices).extents);
  const ValueId list = graph.reshape(indices, {1, result[axis], 1});
  return graph.reshape(gathered(node, around_axis(node, x, axis), list, 1), result);
}

/// `position` counted from the start; fails where there is no such element.
int64_t checked(const Node& node, int64_t position, int64_t extent) {
  if (position < -extent || position >= extent) node.fail(fmt::format("takes element {} of {}", position, extent));
  return position < 0 ? position + extent : position;
}

Extents part_of(const Extents& extents, size_t begin, size_t end) {
  return {extents.begin() + static_cast<std::ptrdiff_t>(begin), extents.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// The rows that coordinates name: of `coordinates`, each `count` behind another are a position in x, whose first
/// dimensions have `extents`.
std::vector<int64_t> rows_of(const Node& node, const std::vector<int64_t>& coordinates, const Extents& extents) {
  std::vector<int64_t> rows = node.table(std::ssize(coordinates) / std::ssize(extents));
  for (size_t i = 0; i < coordinates.size(); ++i) {
    const size_t d = i % extents.size();
    int64_t& row = rows[i / extents.size()];
    row = row * extents[d] + checked(node, coordinates[i], extents[d]);
  }
  return rows;
}

/// Rows of `data`, and in the place of those in `rows` rows of `updates`, one for each, of which the last one stays.
ValueId with_rows(const Node& node, ValueId data, ValueId updates, const std::vector<int64_t>& rows) {
  graph::Graph& graph = node.graph();
  const int64_t count = graph.value(data).extents[0];
  std::vector<int64_t> sources = node.table(count);
  std::iota(sources.begin(), sources.end(), 0);
  for (size_t i = 0; i < rows.size(); ++i) sources[static_cast<size_t>(rows[i])] = count + static_cast<int64_t>(i);
  std::vector<ValueId> parts;
  for (auto next = sources.begin(); next != sources.end();) {
    const bool is_data = *next < count;
    const auto end = std::find_if(next, sources.end(), [&](int64_t source) { return (source < count) != is_data; });
    for (const Run& run : runs_of({next, end}, most_parts_of_updates)) {
      if (parts.size() == most_parts_of_updates) return taken(node, graph.concat({data, updates}, 0), 0, sources);
      parts.push_back(
          part(graph, is_data ? data : updates, 0, {run.first - (is_data ? 0 : count), run.step, run.count}));
    }
    next = end;
  }
  if (parts.empty()) return data;
  return parts.size() == 1 ? parts.front() : graph.concat(std::move(parts), 0);
}

/// Ways in which updates of one element, and then that element, become one.
struct Reduction {
  ScatterMode of_updates;
  TensorOpMode with_element;
};
constexpr std::array reductions = {
    Reduction{ScatterMode::add, TensorOpMode::add}, Reduction{ScatterMode::mul, TensorOpMode::mul},
    Reduction{ScatterMode::min, TensorOpMode::min}, Reduction{ScatterMode::max, TensorOpMode::max}};

/// The node's; nothing where the last update takes the place of the element.
std::optional<Reduction> reduction_of(const Node& node) {
  const std::string word = node.attributes().word("reduction", "none");
  if (word == "none") return std::nullopt;
  if (node.is_integer(0)) refuse(fmt::format("its reduction is '{}', of integers", printable_name(word)));
  for (const Reduction& reduction : reductions) {
    if (to_string(reduction.of_updates) == word) return reduction;
  }
  node.fail(fmt::format("reduction is '{}', expected none, add, mul, min or max", printable_name(word)));
}

/// `data`, and what updates at `indices` along the axis make of it.
ValueId reduced(const Node& node, const Reduction& reduction, ValueId data, ValueId updates, ValueId indices,
                size_t axis) {
  graph::Graph& graph = node.graph();
  Scatter scatter;
  scatter.updates = spec_of(graph, updates);
  scatter.indices = spec_of(graph, indices);
  scatter.y = spec_of(graph.value(data).dtype, graph.value(data).extents);
  scatter.axis = static_cast<int64_t>(axis);
  scatter.mode = reduction.of_updates;
  const ValueId of_updates = graph.call(scatter.request(), {{"updates", updates}, {"indices", indices}}).front().value;
  return tensor_op(node, reduction.with_element, {data, of_updates}, scatter.y.dtype);
}

/// ScatterElements with a reduction. Indices may be fewer than the elements beside the axis: what lies behind the last
/// of them stays as it is.
ValueId reduced_where_indices_reach(const Node& node, const Reduction& reduction, size_t axis) {
  graph::Graph& graph = node.graph();
  const Extents &x = node.extents(0), &indices = node.extents(1);
  if (graph::count_elements(indices) == 0) return node.operand(0);
  ValueId reached = node.operand(0);
  std::vector<std::pair<size_t, ValueId>> behind;  // by the dimension along which it lies behind
  for (size_t d = 0; d < x.size(); ++d) {
    if (d == axis || indices[d] == x[d]) continue;
    if (indices[d] > x[d]) node.fail(fmt::format("has {} indices along dimension {} of {}", indices[d], d, x[d]));
    behind.emplace_back(d, part(graph, reached, d, {indices[d], 1, x[d] - indices[d]}));
    reached = part(graph, reached, d, {0, 1, indices[d]});
  }
  ValueId result = reduced(node, reduction, reached, node.operand(2), node.operand(1), axis);
  for (; !behind.empty(); behind.pop_back()) {
    result = graph.concat({result, behind.back().second}, behind.back().first);
  }
  return result;
}

}  // namespace

ValueId taken(const Node& node, ValueId x, size_t axis, const std::vector<int64_t>& positions) {
  graph::Graph& graph = node.graph();
  const std::vector<Run> runs = runs_of(positions, most_parts);
  if (runs.empty()) refuse("its result has no elements");
  if (runs.size() > most_parts) return taken_at(node, x, axis, constant_of(node, positions));
  std::vector<ValueId> parts;
  parts.reserve(runs.size());
  for (const Run& run : runs) parts.push_back(part(graph, x, axis, run));
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
  for (int64_t& position : positions) position = checked(node, position, x[axis]);
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

/// x at known coordinates of its first dimensions, behind those of the batch.
void read_gather_nd(Node& node) {
  node.require_inputs(2, 2);
  graph::Graph& graph = node.graph();
  const Extents &x = node.extents(0), &indices = node.extents(1);
  const int64_t batch = node.attributes().integer("batch_dims", 0);
  const auto batched = static_cast<size_t>(std::max<int64_t>(batch, 0));
  const size_t named = indices.empty() || indices.back() < 1 ? 0 : static_cast<size_t>(indices.back());
  if (batch < 0 || batched >= std::min(x.size(), indices.size()) || named == 0 || batched + named > x.size()) {
    node.fail(fmt::format("has indices of {} for an input of {} with {} dimensions of batch", fmt::join(indices, "x"),
                          fmt::join(x, "x"), batch));
  }
  std::vector<int64_t> rows = rows_of(node, node.integers(1, "indices"), part_of(x, batched, batched + named));
  const int64_t images = graph::count_elements(part_of(x, 0, batched));
  const int64_t rows_of_image = graph::count_elements(part_of(x, batched, batched + named));
  if (part_of(x, 0, batched) != part_of(indices, 0, batched)) node.fail("has another batch than its indices");
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] += static_cast<int64_t>(i) * images / static_cast<int64_t>(rows.size()) * rows_of_image;
  }
  const Extents inner = part_of(x, batched + named, x.size());
  Extents result = part_of(indices, 0, indices.size() - 1);
  result.insert(result.end(), inner.begin(), inner.end());
  const ValueId matrix = graph.reshape(node.operand(0), {images * rows_of_image, graph::count_elements(inner)});
  node.give(graph.reshape(taken(node, matrix, 0, rows), result));
}

/// x with other elements at coordinates of its first dimensions: what assignments to parts of a tensor become. The
/// coordinates are known, unless there is one and a reduction.
void read_scatter_nd(Node& node) {
  node.require_inputs(3, 3);
  graph::Graph& graph = node.graph();
  const Extents &x = node.extents(0), &indices = node.extents(1);
  const size_t named = indices.empty() || indices.back() < 1 ? 0 : static_cast<size_t>(indices.back());
  if (named == 0 || named > x.size()) {
    node.fail(fmt::format("has indices of {} for an input of {}", fmt::join(indices, "x"), fmt::join(x, "x")));
  }
  const Extents inner = part_of(x, named, x.size());
  Extents expected = part_of(indices, 0, indices.size() - 1);
  expected.insert(expected.end(), inner.begin(), inner.end());
  if (node.extents(2) != expected) {
    node.fail(fmt::format("has updates of {}, expected {}", fmt::join(node.extents(2), "x"), fmt::join(expected, "x")));
  }
  const int64_t count = graph::count_elements(part_of(x, 0, named)), size = graph::count_elements(inner);
  const int64_t named_rows = graph::count_elements(part_of(indices, 0, indices.size() - 1));
  const ValueId data = graph.reshape(node.operand(0), {count, size}),
                updates = graph.reshape(node.operand(2), {named_rows, size});
  const std::optional<Reduction> reduction = reduction_of(node);
  if (reduction && named == 1 && node.host(1) == nullptr) {
    const ValueId rows = graph.reshape(node.operand(1), {named_rows, 1});
    return node.give(graph.reshape(reduced(node, *reduction, data, updates, rows, 0), x));
  }
  const std::vector<int64_t> rows = rows_of(node, node.integers(1, "indices"), part_of(x, 0, named));
  if (!reduction) return node.give(graph.reshape(with_rows(node, data, updates, rows), x));
  const ValueId at = graph.reshape(constant_of(node, rows), {named_rows, 1});
  node.give(graph.reshape(reduced(node, *reduction, data, updates, at, 0), x));
}

/// numpy.put_along_axis() at known indices, which may be fewer along any dimension; with a reduction at any indices.
void read_scatter_elements(Node& node) {
  node.require_inputs(3, 3);
  graph::Graph& graph = node.graph();
  const Extents &x = node.extents(0), &indices = node.extents(1);
  const size_t axis = node.axis(node.attributes().integer("axis", 0), x.size());
  if (indices.size() != x.size() || node.extents(2) != indices) {
    node.fail(fmt::format("has indices of {} and updates of {} for an input of {}", fmt::join(indices, "x"),
                          fmt::join(node.extents(2), "x"), fmt::join(x, "x")));
  }
  if (const std::optional<Reduction> reduction = reduction_of(node)) {
    if (x.size() > 5) refuse(fmt::format("its input has {} dimensions, and up to 5 are covered", x.size()));
    return node.give(reduced_where_indices_reach(node, *reduction, axis));
  }
  const std::vector<int64_t> along_axis = node.integers(1, "indices");
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::ssize(along_axis); ++i) {
    int64_t row = 0, stride = 1, rest = i;
    for (size_t d = x.size(); d-- > 0; stride *= x[d], rest /= indices[d]) {
      row += stride * checked(node, d == axis ? along_axis[static_cast<size_t>(i)] : rest % indices[d], x[d]);
    }
    rows.push_back(row);
  }
  const ValueId data = graph.reshape(node.operand(0), {graph::count_elements(x), 1}),
                updates = graph.reshape(node.operand(2), {std::ssize(rows), 1});
  node.give(graph.reshape(with_rows(node, data, updates, rows), x));
}

}  // namespace kiln::onnx_frontend
