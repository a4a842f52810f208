// Resize and Upsample. Spatial dimensions are a call of resize, where that has the node's rule. Where it has not, the
// node goes dimension by dimension: the nearest elements are repeated or taken; others are a product with the matrix
// that says what each element of the result is made of.
#include "kiln/generator/operations/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "kiln/base/checked.h"
#include "kiln/base/printable.h"
#include "onnx/pointwise.h"
#include "onnx/products.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

constexpr int64_t first_with_roi = 11, first_with_axes = 18;

/// How one dimension changes.
struct Side {
  size_t axis = 0;
  int64_t inputs = 0, outputs = 0;
  double scale = 1;
  bool is_ratio = false;      ///< The scale is that of the extents, whatever rounding made of it.
  double begin = 0, end = 1;  ///< Begin and end of the region, where the mode has one: parts of the dimension.
};

/// The attributes of a node.
struct Rule {
  std::string coordinates, mode, nearest;
  double cubic = -0.75, outside = 0;
  bool excludes_outside = false, antialiases = false;
};

/// Elements of the input that one element of the result is made of; none: it lies outside of the region.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

Rule rule_of(const Node& node) {
  const Attributes& attributes = node.attributes();
  const bool is_plain = node.type() == "Upsample" || node.opset() < first_with_roi;
  Rule rule;
  rule.coordinates = attributes.word("coordinate_transformation_mode", is_plain ? "asymmetric" : "half_pixel");
  rule.mode = attributes.word("mode", "nearest");
  rule.nearest = attributes.word("nearest_mode", is_plain ? "floor" : "round_prefer_floor");
  rule.cubic = attributes.real("cubic_coeff_a").value_or(rule.cubic);
  rule.outside = attributes.real("extrapolation_value").value_or(0);
  rule.excludes_outside = attributes.integer("exclude_outside", 0) != 0;
  rule.antialiases = attributes.integer("antialias", 0) != 0;
  if (rule.mode == "bilinear") rule.mode = "linear";  // of old opsets
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic") {
    node.fail(fmt::format("mode is '{}', expected nearest, linear or cubic", printable_name(rule.mode)));
  }
  return rule;
}

/// The elements of an input of numbers; none where it is left out or empty.
std::vector<double> numbers(const Node& node, int input, const char* what) {
  if (!node.has(input)) return {};
  const HostTensor* tensor = node.host(input);
  if (tensor == nullptr) {
    refuse(fmt::format("its {} are computed from the model's inputs, and have to be known before", what));
  }
  std::vector<double> elements;
  for (size_t i = 0; i < tensor->size(); ++i) elements.push_back(tensor->real(i));
  return elements;
}

std::vector<double> scales_of(const Node& node) {
  if (node.type() == "Upsample") {
    constexpr int64_t first_with_scales = 9;
    if (node.opset() < first_with_scales) return node.attributes().reals("scales").value_or(std::vector<double>());
    return numbers(node, 1, "scales");
  }
  return numbers(node, node.opset() < first_with_roi ? 1 : 2, "scales");
}

/// An extent or a position of an element. Refuses the node where it is none that an element can have.
int64_t integer_of(double number) {
  const std::optional<int64_t> integer = checked_truncate(number);
  if (!integer || std::abs(*integer) > graph::most_elements) refuse(fmt::format("it reaches for element {}", number));
  return *integer;
}

/// With sizes that are bounds, all dimensions get the same scale.
void keep_ratio(const Node& node, std::vector<Side>& sides) {
  const std::string policy = node.attributes().word("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller") {
    node.fail(fmt::format("keep_aspect_ratio_policy is '{}', expected stretch, not_larger or not_smaller",
                          printable_name(policy)));
  }
  double scale = sides.front().scale;
  for (const Side& side : sides) {
    scale = policy == "not_larger" ? std::min(scale, side.scale) : std::max(scale, side.scale);
  }
  for (Side& side : sides) {
    side.scale = scale;
    side.is_ratio = false;
    side.outputs = integer_of(std::floor(scale * static_cast<double>(side.inputs) + 0.5));
  }
}

std::vector<Side> sides_of(const Node& node) {
  std::vector<int64_t> listed(node.rank());
  for (size_t d = 0; d < listed.size(); ++d) listed[d] = static_cast<int64_t>(d);
  if (node.opset() >= first_with_axes) listed = node.attributes().integers("axes").value_or(listed);
  const std::vector<size_t> axes = node.axes(listed, node.rank());
  const bool has_sizes = node.type() == "Resize" && node.opset() >= first_with_roi && node.has(3);
  const std::vector<double> given = has_sizes ? numbers(node, 3, "sizes") : scales_of(node);
  if (given.size() != axes.size()) {
    node.fail(fmt::format("has {} {} for {} dimensions", given.size(), has_sizes ? "sizes" : "scales", axes.size()));
  }
  const bool has_region = node.attributes().word("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  const std::vector<double> region = has_region ? numbers(node, 1, "region") : std::vector<double>();
  if (has_region && region.size() != 2 * axes.size()) {
    node.fail(fmt::format("has a region of {} numbers, expected {}", region.size(), 2 * axes.size()));
  }
  std::vector<Side> sides;
  for (size_t i = 0; i < axes.size(); ++i) {
    Side side;
    side.axis = axes[i];
    side.inputs = node.extents(0)[axes[i]];
    const auto inputs = static_cast<double>(side.inputs);
    constexpr double most = 1 << 24;
    if (!std::isfinite(given[i]) || given[i] < 0) {
      node.fail(fmt::format("the {} of dimension {} is {}, expected a positive number", has_sizes ? "size" : "scale",
                            axes[i], given[i]));
    }
    if (given[i] > most) {
      refuse(fmt::format("the {} of dimension {} is {}, and up to {} are covered", has_sizes ? "size" : "scale",
                         axes[i], given[i], most));
    }
    if (side.inputs == 0 || given[i] == 0) refuse("it makes, or is given, a tensor without elements");
    side.scale = has_sizes ? given[i] / inputs : given[i];
    side.is_ratio = has_sizes;
    side.outputs = integer_of(std::floor(has_sizes ? given[i] : inputs * given[i]));
    if (has_region) {
      side.begin = region[i];
      side.end = region[axes.size() + i];
    }
    sides.push_back(side);
  }
  if (has_sizes && !sides.empty()) keep_ratio(node, sides);
  return sides;
}

/// Where element `y` of the result lies in the input.
double position_of(const Node& node, const Rule& rule, const Side& side, int64_t element) {
  const auto y = static_cast<double>(element), inputs = static_cast<double>(side.inputs);
  const double outputs = side.scale * inputs;  // not rounded, as ONNX defines it
  const std::string& mode = rule.coordinates;
  if (mode == "half_pixel") return (y + 0.5) / side.scale - 0.5;
  if (mode == "pytorch_half_pixel") return outputs == 1 ? -0.5 : (y + 0.5) / side.scale - 0.5;
  if (mode == "align_corners") return outputs == 1 ? 0 : y * (inputs - 1) / (outputs - 1);
  if (mode == "asymmetric") return y / side.scale;
  if (mode == "tf_half_pixel_for_nn") return (y + 0.5) / side.scale;
  if (mode == "half_pixel_symmetric") {
    const double offset = inputs / 2 * (1 - static_cast<double>(side.outputs) / outputs);
    return offset + (y + 0.5) / side.scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    const double reach = (side.end - side.begin) * (inputs - 1);
    return side.begin * (inputs - 1) + (outputs == 1 ? reach / 2 : y * reach / (outputs - 1));
  }
  node.fail(fmt::format("coordinate_transformation_mode is '{}', which ONNX does not have", printable_name(mode)));
}

int64_t nearest_of(const Node& node, const Rule& rule, double position) {
  const std::string& mode = rule.nearest;
  if (mode == "round_prefer_floor") return integer_of(std::ceil(position - 0.5));
  if (mode == "round_prefer_ceil") return integer_of(std::floor(position + 0.5));
  if (mode == "floor") return integer_of(std::floor(position));
  if (mode == "ceil") return integer_of(std::ceil(position));
  node.fail(fmt::format("nearest_mode is '{}', which ONNX does not have", printable_name(mode)));
}

/// Keys' cubic at distance x.
double cubic(double a, double x) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// The weights round a position: of 2 elements or 4; of more where the result is smaller and what lies between counts.
Taps taps_at(const Node& node, const Rule& rule, const Side& side, double position) {
  const bool is_cubic = rule.mode == "cubic";
  const double reach = is_cubic ? 2 : 1;
  const double shrink = rule.antialiases ? std::min(side.scale, 1.0) : 1.0;
  const double base = std::ceil(position) - 1;  // the element before; a position on an element is the one behind it
  const int64_t first = integer_of(std::floor(-reach / shrink) + 1), count = 2 - 2 * first;
  node.budget().take_elements(count);
  Taps taps{integer_of(base) + first, {}};
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double distance = (static_cast<double>(first + i) - (position - base)) * shrink;
    const int64_t element = taps.first + i;
    const bool is_out = rule.excludes_outside && (element < 0 || element >= side.inputs);
    const double weight = is_cubic ? cubic(rule.cubic, distance) : std::max(0.0, 1 - std::abs(distance));
    taps.weights.push_back(is_out ? 0 : weight);
    sum += taps.weights.back();
  }
  for (double& weight : taps.weights) weight /= sum;
  return taps;
}

/// A value whose element i along dimension d repeats `times`.
ValueId repeated(graph::Graph& graph, ValueId x, size_t d, int64_t times) {
  const Extents whole = graph.value(x).extents;
  Extents split = whole, wide = whole, result = whole;
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(d) + 1, 1);
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(d) + 1, times);
  result[d] *= times;
  return graph.reshape(graph.repeat(graph.reshape(x, split), wide), result);
}

ValueId nearest_along(const Node& node, const Rule& rule, const Side& side, ValueId x) {
  constexpr int64_t steps_of_a_position = 16;
  node.budget().take_elements(side.outputs, steps_of_a_position);
  std::vector<int64_t> elements = node.table(side.outputs);
  bool repeats = side.outputs % side.inputs == 0;
  for (int64_t y = 0; y < side.outputs; ++y) {
    int64_t& element = elements[static_cast<size_t>(y)];
    element = nearest_of(node, rule, position_of(node, rule, side, y));
    element = std::clamp<int64_t>(element, 0, side.inputs - 1);
    repeats = repeats && element == y / (side.outputs / side.inputs);
  }
  if (repeats) return repeated(node.graph(), x, side.axis, side.outputs / side.inputs);
  return taken(node, x, side.axis, elements);
}

/// Weights from which the elements of the result are made, a row each.
HostTensor matrix_of(const Node& node, const Rule& rule, const Side& side) {
  constexpr int64_t most = int64_t{1} << 24;
  if (!checked_elements(std::array{side.outputs, side.inputs}, most)) {
    refuse(fmt::format("it makes {} elements of {}, by a matrix that is too large", side.outputs, side.inputs));
  }
  HostTensor matrix(node.budget(), onnx::TensorProto::FLOAT, {side.outputs, side.inputs});
  for (int64_t y = 0; y < side.outputs; ++y) {
    const double position = position_of(node, rule, side, y);
    const bool is_outside = position < 0 || position > static_cast<double>(side.inputs - 1);
    if (rule.coordinates == "tf_crop_and_resize" && is_outside) continue;
    const Taps taps = taps_at(node, rule, side, position);
    for (size_t i = 0; i < taps.weights.size(); ++i) {
      const int64_t element = std::clamp<int64_t>(taps.first + static_cast<int64_t>(i), 0, side.inputs - 1);
      matrix.reals().at(static_cast<size_t>(y * side.inputs + element)) += taps.weights[i];
    }
  }
  return matrix;
}

ValueId weighted_along(const Node& node, const Rule& rule, const Side& side, ValueId x) {
  graph::Graph& graph = node.graph();
  const DType dtype = graph.value(x).dtype;
  const ValueId matrix = node.constant("weights of positions", dtype, matrix_of(node, rule, side));
  const Extents whole = graph.value(x).extents;
  const auto at = whole.begin() + static_cast<std::ptrdiff_t>(side.axis);
  const int64_t before = graph::count_elements(Extents(whole.begin(), at)),
                behind = graph::count_elements(Extents(at + 1, whole.end()));
  Extents result = whole;
  result[side.axis] = side.outputs;
  if (behind == 1) {
    const ValueId rows = graph.reshape(x, {before, side.inputs});
    return graph.reshape(product(node, rows, graph.permute(matrix, {1, 0})), result);
  }
  const ValueId columns = graph.reshape(x, {before, side.inputs, behind});
  return graph.reshape(product(node, with_rank(graph, matrix, 3), columns), result);
}

/// The enumerator of that word, of those up to `last`.
template <typename Enum>
std::optional<Enum> called(std::string_view word, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_string(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// The scale of an axis, if it is another than the ratio of the extents; nothing where it is no f32, or beyond those
/// that resize takes, or the result's extent was rounded up, as sizes that keep the ratio are.
std::optional<ResizeScale> scale_of(const Side& side) {
  const bool is_ratio =
      side.is_ratio || side.scale * static_cast<double>(side.inputs) == static_cast<double>(side.outputs);
  const auto scale = static_cast<float>(side.scale);
  constexpr double least = 1.0 / 128, most = 128;
  if (side.scale < least || side.scale > most) return std::nullopt;
  if (is_ratio) return ResizeScale{};
  if (side.outputs > integer_of(side.scale * static_cast<double>(side.inputs))) return std::nullopt;
  return static_cast<double>(scale) == side.scale ? std::optional(ResizeScale::of(scale)) : std::nullopt;
}

/// All dimensions by one call; nothing where resize does not have the node's rule.
std::optional<ValueId> resized(const Node& node, const Rule& rule, const std::vector<Side>& sides, ValueId x) {
  graph::Graph& graph = node.graph();
  const std::string prefix = "round_";
  const std::string_view nearest = rule.nearest;
  const auto mode = called(rule.mode, ResizeMode::cubic);
  const auto coordinates = called(rule.coordinates, ResizeCoordinates::tf_half_pixel_for_nn);
  const auto rounding =
      called(nearest.starts_with(prefix) ? nearest.substr(prefix.size()) : nearest, ResizeRounding::ceil);
  const bool has_cubic = rule.cubic >= -1 && rule.cubic <= 0;
  Extents result = graph.value(x).extents;
  const bool is_image = result.size() >= 3 && result.size() <= 5;
  if (!is_image || !mode || !coordinates || !rounding || !has_cubic || rule.antialiases) return std::nullopt;
  Resize resize;
  resize.x = spec_of(graph, x);
  resize.mode = *mode;
  resize.coordinates = *coordinates;
  resize.rounding = *rounding;
  resize.excludes_outside = rule.excludes_outside && *mode == ResizeMode::cubic;
  resize.scales.resize(result.size() - 2);
  for (const Side& side : sides) {
    const auto scale = scale_of(side);
    const bool stays = side.outputs == side.inputs && side.scale == 1;
    if (!scale || (side.axis < 2 && !stays)) return std::nullopt;
    if (side.axis >= 2) resize.scales[side.axis - 2] = *scale;
    result[side.axis] = side.outputs;
  }
  resize.y = spec_of(resize.x.dtype, result);
  const graph::Numbers numbers =
      *mode == ResizeMode::cubic ? graph::Numbers{{"cubic", static_cast<float>(rule.cubic)}} : graph::Numbers{};
  return graph.call(resize.request(), {{"x", x}}, numbers).front().value;
}

}  // namespace

void read_resize(Node& node) {
  node.require_inputs(1, 4);
  const Rule rule = rule_of(node);
  const bool is_nearest = rule.mode == "nearest";
  const bool has_region = rule.coordinates == "tf_crop_and_resize";
  if (!is_nearest && node.is_integer(0))
    refuse(fmt::format("its elements are integers, and its mode is {}", rule.mode));
  if (is_nearest && has_region) refuse("it takes the nearest elements of a region");
  const std::vector<Side> sides = sides_of(node);
  for (const Side& side : sides) {
    if (side.outputs < 1) refuse("its result has no elements");
  }
  if (const auto whole = has_region ? std::nullopt : resized(node, rule, sides, node.operand(0)))
    return node.give(*whole);
  // Elements outside of the region are `outside`, which is 0 to the products.
  const bool is_shifted = has_region && rule.outside != 0;
  const auto outside = static_cast<float>(rule.outside);
  ValueId value = node.operand(0);
  if (is_shifted) value = expression(node, "acc - outside", value, {}, node.dtype(0), {{"outside", outside}});
  for (const Side& side : sides) {
    const bool stays = side.outputs == side.inputs && side.scale == 1 && side.begin == 0 && side.end == 1;
    if (stays) continue;
    value = is_nearest ? nearest_along(node, rule, side, value) : weighted_along(node, rule, side, value);
  }
  if (is_shifted) value = expression(node, "acc + outside", value, {}, node.dtype(0), {{"outside", outside}});
  node.give(value);
}

}  // namespace kiln::onnx_frontend
