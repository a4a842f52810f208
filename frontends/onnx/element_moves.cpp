#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

constexpr int64_t largest_pad = std::numeric_limits<int32_t>::max();  // keeps sums inside 64 bits

std::vector<int64_t> counted(size_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

/// Range that Slice takes along one axis, by ONNX's rules for step > 0: negative positions count from the end, those
/// outside are moved to the border.
struct SliceRange {
  int64_t begin, extent;
};

SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto inside = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + extent : position, 0, extent);
  };
  const int64_t first = inside(start), last = inside(end);
  return {first, last > first ? (last - first - 1) / step + 1 : 0};
}

/// Positions that Slice takes along one axis where step < 0: positions below the first one are its end, those above are
/// moved to the last one.
std::vector<int64_t> positions_backwards(const Node& node, int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto inside = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + extent : position, -1, extent - 1);
  };
  // No element is farther from another than that.
  const int64_t first = std::max<int64_t>(inside(start), 0), last = inside(end),
                by = std::min(-std::max(step, -graph::most_elements), graph::most_elements);
  std::vector<int64_t> positions = node.table(extent > 0 && first > last ? (first - last - 1) / by + 1 : 0);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = first - static_cast<int64_t>(i) * by;
  return positions;
}

std::vector<int64_t> split_sizes(const Node& node, int64_t extent) {
  constexpr int64_t first_with_input = 13, first_with_a_shorter_last = 18;
  const int64_t parts = node.outputs();
  std::vector<int64_t> sizes = node.list("split", 1, first_with_input, {});
  if (sizes.empty()) {
    if (extent % parts != 0 && node.opset() < first_with_a_shorter_last) {
      node.fail(fmt::format("{} elements are not {} equal parts", extent, parts));
    }
    const int64_t size = (extent + parts - 1) / parts;
    sizes.assign(static_cast<size_t>(parts), size);
    sizes.back() = extent - size * (parts - 1);
  }
  int64_t left = extent;
  for (const int64_t size : sizes) left = size < 0 || size > left ? -1 : left - size;
  if (left != 0 || std::ssize(sizes) != parts) {
    node.fail(fmt::format("parts of {} for {} outputs, expected as many that add up to {}", fmt::join(sizes, ", "),
                          parts, extent));
  }
  return sizes;
}

/// Elements that a Pad puts before and behind each dimension; negative ones are taken away.
std::vector<int64_t> pads_of(const Node& node, size_t rank) {
  constexpr int64_t first_with_inputs = 11, first_with_axes = 18;
  const std::vector<int64_t> given = node.list("pads", 1, first_with_inputs, {});
  std::vector<int64_t> listed = counted(rank);
  if (node.opset() >= first_with_axes && node.has(3)) listed = node.list(3, "axes");
  const std::vector<size_t> axes = node.axes(listed, rank);
  if (given.size() != 2 * axes.size()) {
    node.fail(fmt::format("has {} pads, expected 2 for each of {} axes", given.size(), axes.size()));
  }
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] < -largest_pad || given[i] > largest_pad)
      node.fail(fmt::format("pads holds {}, beyond 2^31 - 1", given[i]));
    pads[axes[i % axes.size()] + (i < axes.size() ? 0 : rank)] = given[i];
  }
  return pads;
}

/// The part of `value` from `begin` to before `end` along dimension d.
ValueId part(graph::Graph& graph, ValueId value, size_t d, int64_t begin, int64_t end) {
  Extents extents = graph.value(value).extents, first(extents.size(), 0);
  first[d] = begin;
  extents[d] = end - begin;
  return graph.slice(value, first, extents, Extents(extents.size(), 1));
}

/// `value` with elements of its own border around dimension d: repeated, mirrored, or from the other side.
ValueId padded_by_itself(const Node& node, const std::string& mode, ValueId value, size_t d, int64_t before,
                         int64_t behind) {
  graph::Graph& graph = node.graph();
  const int64_t extent = graph.value(value).extents[d];
  if (before == 0 && behind == 0) return value;
  const int64_t most = mode == "edge" ? largest_pad : mode == "wrap" ? extent : extent - 1;
  if (extent == 0 || before > most || behind > most) {
    refuse(fmt::format("it pads {} elements by {} and {} in mode {}", extent, before, behind, mode));
  }
  std::vector<ValueId> parts;
  const auto repeated = [&](int64_t at, int64_t count) {
    Extents extents = graph.value(value).extents;
    extents[d] = count;
    if (count > 0) parts.push_back(graph.repeat(part(graph, value, d, at, at + 1), extents));
  };
  const auto mirrored = [&](int64_t from, int64_t count) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < count; ++i) positions.push_back(from - i);
    if (count > 0) parts.push_back(taken(node, value, d, positions));
  };
  if (mode == "edge") {
    repeated(0, before);
  } else if (mode == "wrap") {
    if (before > 0) parts.push_back(part(graph, value, d, extent - before, extent));
  } else {
    mirrored(before, before);
  }
  parts.push_back(value);
  if (mode == "edge") {
    repeated(extent - 1, behind);
  } else if (mode == "wrap") {
    if (behind > 0) parts.push_back(part(graph, value, d, 0, behind));
  } else {
    mirrored(extent - 2, behind);
  }
  return graph.concat(std::move(parts), d);
}

/// `value` with `number` around it.
ValueId padded(const Node& node, ValueId value, const Extents& before, const Extents& behind, float number) {
  graph::Graph& graph = node.graph();
  TensorTransform transform;
  transform.x = spec_of(graph, value);
  transform.pad_begin = before;
  transform.pad_end = behind;
  Extents extents = graph.value(value).extents;
  for (size_t d = 0; d < extents.size(); ++d) extents[d] += before[d] + behind[d];
  transform.y = spec_of(graph.value(value).dtype, extents);
  return graph.call(transform.request(), {{"x", value}}, {{"value", number}}).front().value;
}

Extents reshaped_extents(const Node& node) {
  node.require_inputs(2, 2);
  std::vector<int64_t> target = node.list(1, "extents");
  const Extents& from = node.extents(0);
  const bool keeps_zeros = node.attributes().integer("allowzero", 0) != 0;
  std::optional<size_t> open;
  if (target.size() > graph::most_dimensions) {
    node.fail(fmt::format("its result has {} dimensions, expected up to {}", target.size(), graph::most_dimensions));
  }
  for (size_t d = 0; d < target.size(); ++d) {
    if (target[d] == 0 && !keeps_zeros) {
      if (d >= from.size()) node.fail("copies an extent that its input does not have");
      target[d] = from[d];
    }
    if (target[d] < -1 || (target[d] == -1 && open))
      node.fail(fmt::format("has the extents {}", fmt::join(target, ",")));
    if (target[d] == -1) open = d;
  }
  const int64_t elements = graph::count_elements(from);
  if (open) {
    target[*open] = 1;
    const int64_t known = graph::count_elements(target);
    target[*open] = known == 0 ? 0 : elements / known;
  }
  if (graph::count_elements(target) != elements) {
    node.fail(fmt::format("its input of {} does not become {}", fmt::join(from, "x"), fmt::join(target, "x")));
  }
  return target;
}

Extents flattened_extents(const Node& node) {
  node.require_inputs(1, 1);
  const Extents& x = node.extents(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = node.attributes().integer("axis", 1);
  if (axis < -rank || axis > rank) node.fail(fmt::format("axis is {}, expected {} to {}", axis, -rank, rank));
  axis += axis < 0 ? rank : 0;
  const Extents rows(x.begin(), x.begin() + axis), columns(x.begin() + axis, x.end());
  return {graph::count_elements(rows), graph::count_elements(columns)};
}

Extents squeezed_extents(const Node& node) {
  constexpr int64_t first_with_input = 13;
  node.require_inputs(1, 2);
  const Extents& x = node.extents(0);
  const std::vector<size_t> axes = node.axes(node.list("axes", 1, first_with_input, {}), x.size());
  Extents extents;
  for (size_t d = 0; d < x.size(); ++d) {
    const bool listed = std::count(axes.begin(), axes.end(), d) > 0;
    if (listed && x[d] != 1) node.fail(fmt::format("takes dimension {} away, which has {} elements", d, x[d]));
    if (!listed && (!axes.empty() || x[d] != 1)) extents.push_back(x[d]);
  }
  return extents;
}

Extents unsqueezed_extents(const Node& node) {
  constexpr int64_t first_with_input = 13;
  node.require_inputs(1, 2);
  const std::vector<int64_t> listed = node.list("axes", 1, first_with_input, {});
  const size_t rank = node.rank() + listed.size();
  if (rank > graph::most_dimensions) {
    node.fail(fmt::format("its result has {} dimensions, expected up to {}", rank, graph::most_dimensions));
  }
  const std::vector<size_t> axes = node.axes(listed, rank);
  Extents extents;
  size_t own = 0;
  for (size_t d = 0; d < rank; ++d) {
    const bool is_new = std::count(axes.begin(), axes.end(), d) > 0;
    extents.push_back(is_new ? 1 : node.extents(0)[own++]);
  }
  return extents;
}

}  // namespace

Extents extents_of_view(const Node& node) {
  const std::string& type = node.type();
  if (type == "Reshape") return reshaped_extents(node);
  if (type == "Flatten") return flattened_extents(node);
  if (type == "Squeeze") return squeezed_extents(node);
  if (type == "Unsqueeze") return unsqueezed_extents(node);
  return node.extents(0);  // Identity
}

/// Gives a view of input 0, and of the integers that it was computed from, so that a call behind may read these.
template <typename View>
void give_view(Node& node, const View& view) {
  const ValueId value = view(node.operand(0));
  std::optional<Dequantised> from = node.dequantised(0);
  if (!from || !from->is_uniform) return node.give(value);
  from->integers = view(from->integers);
  node.give_dequantised(node.element_type(0), value, *from);
}

void read_view(Node& node) {
  const Extents extents = extents_of_view(node);
  give_view(node, [&](ValueId value) { return node.graph().reshape(value, extents); });
}

void read_transpose(Node& node) {
  node.require_inputs(1, 1);
  std::vector<int64_t> order = counted(node.rank());
  std::reverse(order.begin(), order.end());
  order = node.attributes().integers("perm").value_or(order);
  if (order.size() != node.rank()) node.fail(fmt::format("perm has {} values, expected {}", order.size(), node.rank()));
  const std::vector<size_t> axes = node.axes(order, node.rank());
  give_view(node, [&](ValueId value) { return node.graph().permute(value, axes); });
}

void read_slice(Node& node) {
  constexpr int64_t first_with_inputs = 10;
  node.require_inputs(1, 5);
  const Extents& x = node.extents(0);
  const std::vector<int64_t> starts = node.list("starts", 1, first_with_inputs, {}),
                             ends = node.list("ends", 2, first_with_inputs, {}),
                             listed = node.list("axes", 3, first_with_inputs, counted(starts.size()));
  std::vector<int64_t> steps(starts.size(), 1);
  if (node.opset() >= first_with_inputs && node.has(4)) steps = node.list(4, "steps");
  if (ends.size() != starts.size() || listed.size() != starts.size() || steps.size() != starts.size()) {
    node.fail(fmt::format("has {} starts, {} ends, {} axes and {} steps, expected as many of each", starts.size(),
                          ends.size(), listed.size(), steps.size()));
  }
  const std::vector<size_t> axes = node.axes(listed, x.size());
  Extents begin(x.size(), 0), extents = x, step(x.size(), 1);
  std::vector<std::pair<size_t, std::vector<int64_t>>> backwards;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) node.fail("steps holds 0");
    if (steps[i] < 0) {
      backwards.emplace_back(axes[i], positions_backwards(node, starts[i], ends[i], steps[i], x[axes[i]]));
      continue;
    }
    const SliceRange range = slice_range(starts[i], ends[i], steps[i], x[axes[i]]);
    begin[axes[i]] = range.begin;
    extents[axes[i]] = range.extent;
    step[axes[i]] = range.extent > 1 ? steps[i] : 1;
  }
  ValueId value = node.graph().slice(node.operand(0), begin, extents, step);
  for (const auto& [axis, positions] : backwards) {
    if (positions.empty()) refuse("its result has no elements");
    value = taken(node, value, axis, positions);
  }
  node.give(value);
}

void read_split(Node& node) {
  node.require_inputs(1, 2);
  const size_t d = node.axis(node.attributes().integer("axis", 0), node.rank());
  int64_t begin = 0;
  const std::vector<int64_t> sizes = split_sizes(node, node.extents(0)[d]);
  for (size_t i = 0; i < sizes.size(); ++i) {
    node.give(part(node.graph(), node.operand(0), d, begin, begin + sizes[i]), static_cast<int>(i));
    begin += sizes[i];
  }
}

void read_concat(Node& node) {
  node.require_inputs(1, std::numeric_limits<int>::max());
  if (!node.attributes().has("axis")) node.fail("attribute axis is missing");
  const size_t d = node.axis(node.attributes().integer("axis", 0), node.rank());
  std::vector<ValueId> parts;
  Extents whole = node.extents(0);
  for (int i = 0; i < node.inputs(); ++i) {
    Extents own = node.extents(i);
    if (own.size() == whole.size()) own[d] = whole[d];
    if (own != whole) {
      node.fail(fmt::format("input {} does not fit the others: only extents along the axis may differ", i));
    }
    parts.push_back(node.operand(i));
  }
  node.give(node.graph().concat(std::move(parts), d));
}

void read_pad(Node& node) {
  constexpr int64_t first_with_inputs = 11;
  node.require_inputs(1, 4);
  const std::string mode = node.attributes().word("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    node.fail(fmt::format("mode is '{}', expected constant, reflect, edge or wrap", mode));
  }
  const size_t rank = node.rank();
  const std::vector<int64_t> pads = pads_of(node, rank);
  double number = node.attributes().real("value").value_or(0);
  if (node.opset() >= first_with_inputs) number = node.has(2) ? node.number(2, "padding") : 0;
  graph::Graph& graph = node.graph();
  ValueId value = node.operand(0);
  Extents before(rank, 0), behind(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = graph.value(value).extents[d];
    const int64_t begin = std::max<int64_t>(-pads[d], 0), end = extent + std::min<int64_t>(pads[rank + d], 0);
    if (end < begin) node.fail(fmt::format("takes away more than the {} elements of dimension {}", extent, d));
    value = part(graph, value, d, begin, end);
    before[d] = std::max<int64_t>(pads[d], 0);
    behind[d] = std::max<int64_t>(pads[rank + d], 0);
  }
  if (mode != "constant") {
    for (size_t d = 0; d < rank; ++d) value = padded_by_itself(node, mode, value, d, before[d], behind[d]);
    return node.give(value);
  }
  const bool is_open = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad > 0; });
  if (!is_open) return node.give(value);
  if (rank > 5) refuse(fmt::format("its input has {} dimensions, and 5 are covered", rank));
  node.give(padded(node, value, before, behind, static_cast<float>(number)));
}

void read_expand(Node& node) {
  node.require_inputs(2, 2);
  const Extents extents = broadcast(node, {node.extents(0), node.list(1, "extents")});
  node.give(node.graph().repeat(with_rank(node.graph(), node.operand(0), extents.size()), extents));
}

/// Each dimension becomes two, of which the outer one repeats.
void read_tile(Node& node) {
  node.require_inputs(2, 2);
  const std::vector<int64_t> times = node.list(1, "repeats");
  const Extents& x = node.extents(0);
  if (times.size() != x.size()) node.fail(fmt::format("has {} repeats, expected {}", times.size(), x.size()));
  Extents split, repeated, whole;
  for (size_t d = 0; d < x.size(); ++d) {
    if (times[d] < 0) node.fail(fmt::format("repeats a dimension {} times", times[d]));
    if (times[d] != 1) {
      split.push_back(1);
      repeated.push_back(times[d]);
    }
    split.push_back(x[d]);
    repeated.push_back(x[d]);
    whole.push_back(node.multiply(times[d], x[d]));
  }
  graph::Graph& graph = node.graph();
  node.give(graph.reshape(graph.repeat(graph.reshape(node.operand(0), split), repeated), whole));
}

void read_depth_to_space(Node& node) {
  node.require_inputs(1, 1);
  if (node.rank() != 4) node.fail(fmt::format("its input has {} dimensions, expected 4", node.rank()));
  const Extents& x = node.extents(0);
  const int64_t block = node.attributes().integer("blocksize", 0);
  if (block < 1 || x[1] % node.multiply(block, block) != 0) {
    node.fail(fmt::format("blocksize is {}, whose square does not divide {} channels", block, x[1]));
  }
  const int64_t channels = x[1] / (block * block);
  const std::string mode = node.attributes().word("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") node.fail(fmt::format("mode is '{}', expected DCR or CRD", mode));
  graph::Graph& graph = node.graph();
  const ValueId blocks = mode == "DCR"
                             ? graph.permute(graph.reshape(node.operand(0), {x[0], block, block, channels, x[2], x[3]}),
                                             {0, 3, 4, 1, 5, 2})
                             : graph.permute(graph.reshape(node.operand(0), {x[0], channels, block, block, x[2], x[3]}),
                                             {0, 1, 4, 2, 5, 3});
  node.give(graph.reshape(blocks, {x[0], channels, node.multiply(x[2], block), node.multiply(x[3], block)}));
}

void read_space_to_depth(Node& node) {
  node.require_inputs(1, 1);
  if (node.rank() != 4) node.fail(fmt::format("its input has {} dimensions, expected 4", node.rank()));
  const Extents& x = node.extents(0);
  const int64_t block = node.attributes().integer("blocksize", 0);
  if (block < 1 || x[2] % block != 0 || x[3] % block != 0) {
    node.fail(fmt::format("blocksize is {}, which does not divide {}x{}", block, x[2], x[3]));
  }
  graph::Graph& graph = node.graph();
  const ValueId blocks = graph.permute(
      graph.reshape(node.operand(0), {x[0], x[1], x[2] / block, block, x[3] / block, block}), {0, 3, 5, 1, 2, 4});
  const int64_t channels = node.multiply(x[1], node.multiply(block, block));
  node.give(graph.reshape(blocks, {x[0], channels, x[2] / block, x[3] / block}));
}

}  // namespace kiln::onnx_frontend
