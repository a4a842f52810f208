#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "kiln/generator/operations/local_norm.h"
#include "kiln/generator/operations/norm.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

std::vector<int64_t> axes_from(size_t first, size_t rank) {
  std::vector<int64_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
  return axes;
}

void check_floating(const Node& node) {
  if (node.is_integer(0)) refuse("its elements are integers");
}

/// A number for each channel, or each of `count`, as a tensor of `rank` dimensions that repeats along all but
/// dimension 1.
ValueId along_channels(const Node& node, int input, int64_t count, size_t rank) {
  if (node.extents(input) != Extents{count}) {
    node.fail(fmt::format("input {} is {}, expected {}", input, fmt::join(node.extents(input), "x"), count));
  }
  Extents extents(rank, 1);
  extents[1] = count;
  return node.graph().reshape(node.operand(input), extents);
}

/// Statistics are f32. Known ones are a constant, so that they can be folded into a filter.
ValueId statistics(const Node& node, int input, int64_t count, size_t rank) {
  if (const HostTensor* known = node.host(input)) {
    Extents extents(rank, 1);
    extents[1] = count;
    if (known->extents() == Extents{count}) {
      return node.constant(node.proto().input(input), DType::f32, known->copy(node.budget()).with_extents(extents));
    }
  }
  return converted(node, along_channels(node, input, count, rank), DType::f32);
}

graph::Numbers epsilon_of(const Node& node, double usual = 1e-5) {
  return {{"epsilon", static_cast<float>(node.attributes().real("epsilon").value_or(usual))}};
}

/// norm_forward of x along `axes`, which are all behind dimension 0.
std::vector<graph::Operand> normalised(const Node& node, ValueId x, std::vector<int64_t> axes, std::optional<ValueId> w,
                                       std::optional<ValueId> b, const graph::Numbers& numbers,
                                       bool statistics = false) {
  graph::Graph& graph = node.graph();
  NormForward norm;
  norm.x = norm.y = spec_of(graph, x);
  norm.axes = std::move(axes);
  std::vector<graph::Operand> inputs{{"x", x}};
  if (w) {
    norm.w = spec_of(graph, *w);
    inputs.push_back({"w", *w});
  }
  if (b) {
    norm.b = spec_of(graph, *b);
    inputs.push_back({"b", *b});
  }
  if (statistics) {
    Extents rows = norm.x.extents;
    for (const int64_t axis : norm.axes) rows[static_cast<size_t>(axis)] = 1;
    norm.mean = norm.inv_deviation = spec_of(DType::f32, rows);
  }
  return graph.call(norm.request(), std::move(inputs), numbers);
}

}  // namespace

void read_batch_norm(Node& node) {
  constexpr int64_t last_with_spatial = 8, first_with_mode = 14;
  node.require_inputs(5, 5);
  check_floating(node);
  const size_t rank = node.rank();
  if (node.opset() <= last_with_spatial && node.attributes().integer("spatial", 1) == 0) {
    refuse("it normalises each activation by itself (spatial=0), and channels are covered");
  }
  if (rank < 2) refuse("its input has no channels");
  const bool trains = node.opset() >= first_with_mode ? node.attributes().integer("training_mode", 0) != 0
                                                      : node.gives(1) || node.gives(2) || node.gives(3);
  if (trains) refuse("it takes its statistics from its input, as in training");
  graph::Graph& graph = node.graph();
  const Extents x = node.extents(0);
  ValueId value = node.operand(0);
  const size_t used = std::min<size_t>(rank, 5);
  if (rank > used) {
    value = graph.reshape(value, {x[0], x[1], graph::count_elements(Extents(x.begin() + 2, x.end()))});
  }
  const size_t own_rank = graph.value(value).extents.size();
  const int64_t channels = x[1];
  const ValueId w = along_channels(node, 1, channels, own_rank), b = along_channels(node, 2, channels, own_rank);
  const ValueId mean = statistics(node, 3, channels, own_rank), variance = statistics(node, 4, channels, own_rank);
  NormInference norm;
  norm.x = norm.y = spec_of(graph, value);
  norm.w = spec_of(graph, w);
  norm.b = spec_of(graph, b);
  norm.running_mean = spec_of(graph, mean);
  norm.running_variance = spec_of(graph, variance);
  norm.axes = axes_from(2, own_rank);
  norm.axes.push_back(0);
  const auto given = graph.call(
      norm.request(), {{"x", value}, {"w", w}, {"b", b}, {"running_mean", mean}, {"running_variance", variance}},
      epsilon_of(node));
  node.give(graph.reshape(given.front().value, x));
}

void read_instance_norm(Node& node) {
  node.require_inputs(3, 3);
  check_floating(node);
  const size_t rank = node.rank();
  if (rank < 3) refuse("its input has no spatial dimensions");
  if (rank > 5) refuse(fmt::format("its input has {} dimensions, and up to 5 are covered", rank));
  const int64_t channels = node.extents(0)[1];
  node.give(normalised(node, node.operand(0), axes_from(2, rank), along_channels(node, 1, channels, rank),
                       along_channels(node, 2, channels, rank), epsilon_of(node))
                .front()
                .value);
}

/// x in groups: N, G, C/G and all spatial dimensions as one. Since opset 21 there is a number for each channel, before
/// that one for each group.
void read_group_norm(Node& node) {
  constexpr int64_t first_with_channels = 21;
  node.require_inputs(3, 3);
  check_floating(node);
  const Extents x = node.extents(0);
  if (x.size() < 3) refuse("its input has no spatial dimensions");
  const int64_t groups = node.attributes().integer("num_groups", 0);
  if (groups < 1 || x[1] % groups != 0) {
    node.fail(fmt::format("num_groups is {}, expected a divisor of the {} channels", groups, x[1]));
  }
  graph::Graph& graph = node.graph();
  const ValueId image = graph.reshape(
      node.operand(0), {x[0], groups, x[1] / groups, graph::count_elements(Extents(x.begin() + 2, x.end()))});
  const auto parameter = [&](int input) {
    const bool each_channel = node.opset() >= first_with_channels;
    const int64_t count = each_channel ? x[1] : groups;
    return graph.reshape(along_channels(node, input, count, 4), {1, groups, count / groups, 1});
  };
  const auto given = normalised(node, image, {2, 3}, parameter(1), parameter(2), epsilon_of(node));
  node.give(graph.reshape(given.front().value, x));
}

/// Dimensions before the axis, and from it on, are one each.
void read_layer_norm(Node& node) {
  node.require_inputs(2, 3);
  check_floating(node);
  const Extents x = node.extents(0);
  const size_t first = node.axis(node.attributes().integer("axis", -1), x.size());
  const Extents outer(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(first)),
      row(x.begin() + static_cast<std::ptrdiff_t>(first), x.end());
  graph::Graph& graph = node.graph();
  const ValueId value = graph.reshape(node.operand(0), {graph::count_elements(outer), graph::count_elements(row)});
  const auto parameter = [&](int input) {
    if (graph::count_elements(node.extents(input)) != graph::count_elements(row)) {
      refuse(fmt::format("its input {} is {}, expected {}", input, fmt::join(node.extents(input), "x"),
                         fmt::join(row, "x")));
    }
    return graph.reshape(node.operand(input), {1, graph::count_elements(row)});
  };
  const std::optional<ValueId> b = node.has(2) ? std::optional(parameter(2)) : std::nullopt;
  const bool statistics = node.gives(1) || node.gives(2);
  const auto given = normalised(node, value, {1}, parameter(1), b, epsilon_of(node), statistics);
  node.give(graph.reshape(given[0].value, x));
  Extents rows = x;
  std::fill(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(), 1);
  for (size_t i = 1; i < given.size(); ++i) {
    const int output = given[i].name == "mean" ? 1 : 2;
    node.give_as(onnx::TensorProto::FLOAT, graph.reshape(given[i].value, rows), output);
  }
}

void read_mean_variance_norm(Node& node) {
  node.require_inputs(1, 1);
  check_floating(node);
  const size_t rank = node.rank();
  if (rank > 5) refuse(fmt::format("its input has {} dimensions, and up to 5 are covered", rank));
  std::vector<int64_t> axes = node.attributes().integers("axes").value_or(std::vector<int64_t>{0, 2, 3});
  if (axes.empty()) axes = axes_from(0, rank);
  std::vector<int64_t> counted;
  for (const size_t axis : node.axes(axes, rank)) counted.push_back(static_cast<int64_t>(axis));
  node.give(normalised(node, node.operand(0), counted, {}, {}, {{"epsilon", 1e-9F}}).front().value);
}

void read_lrn(Node& node) {
  node.require_inputs(1, 1);
  check_floating(node);
  LocalNormForward norm;
  norm.x = norm.y = spec_of(node.graph(), node.operand(0));
  if (node.rank() < 2 || node.rank() > 5) refuse("its input has no channels, or more than 5 dimensions");
  norm.size = node.attributes().integer("size", 0);
  if (norm.size < 1) node.fail(fmt::format("size is {}, expected at least 1", norm.size));
  if (norm.size > LocalNormForward::most_size) {
    refuse(fmt::format("its window has {} channels, and up to {} are covered", norm.size, LocalNormForward::most_size));
  }
  const auto real = [&](const char* name, double usual) {
    return static_cast<float>(node.attributes().real(name).value_or(usual));
  };
  node.give(
      node.graph()
          .call(norm.request(), {{"x", node.operand(0)}},
                {{"lrn_alpha", real("alpha", 1e-4)}, {"lrn_beta", real("beta", 0.75)}, {"lrn_k", real("bias", 1)}})
          .front()
          .value);
}

}  // namespace kiln::onnx_frontend
