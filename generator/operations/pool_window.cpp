#include "operations/pool_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

PoolMode pool_mode_of(const Request& request) {
  const std::string& word = request.word("mode");
  for (PoolMode mode : {PoolMode::max, PoolMode::avg, PoolMode::avg_padded}) {
    if (word == to_string(mode)) return mode;
  }
  throw Error(ErrorCode::internal, "pooling has no mode " + word);
}

// The operand in whose channels `operand` names positions; empty if it names none.
std::string_view pooled_operand(const Request& request, std::string_view operand) {
  for (const OperandDefinition& definition : operation(request.operation).operands()) {
    if (definition.name == operand) return definition.positions_of;
  }
  return {};
}

}  // namespace

std::string_view to_string(PoolMode mode) {
  switch (mode) {
    case PoolMode::max:
      return "max";
    case PoolMode::avg:
      return "avg";
    case PoolMode::avg_padded:
      return "avg_padded";
  }
  return "?";
}

std::vector<AttributeDefinition> pooling_attributes() {
  std::vector<AttributeDefinition> all = pool_window_attributes();
  all.insert(all.begin(),
             {"mode",
              std::string("max"),
              Printing::always,
              {"max", "avg", "avg_padded"},
              "max: the maximum. avg: the average over the elements of the window inside x. avg_padded: the average "
              "over those inside x and its padding, which counts as 0. Of a window that lies in the padding alone the "
              "maximum is -inf, and the average 0"});
  return all;
}

std::vector<AttributeDefinition> pool_window_attributes() {
  return {
      {"window",
       Ints{},
       Printing::always,
       {},
       "elements of the window along each axis: h,w in 2-D; global is all of x. It has to be given"},
      {"pad",
       Ints{0},
       Printing::always,
       {},
       "elements of padding on each side of each axis: top,left,bottom,right in 2-D"},
      {"stride", Ints{1}, Printing::always, {}, "steps of the window along each axis: h,w in 2-D"},
      {"dilation",
       Ints{1},
       Printing::when_set,
       {},
       "distance between elements of the window along each axis: h,w in 2-D"},
  };
}

void complete_pool_window(Request& request, std::string_view input) {
  const auto axes = static_cast<size_t>(spatial_axes(request, input));
  const TensorSpec* x = request.find(input);
  for (Attribute& attribute : request.attributes) {
    const auto* word = std::get_if<std::string>(&attribute.value);
    if (attribute.name == "window" && word != nullptr && *word == "global" && x != nullptr) {
      attribute.value = Ints(x->extents.begin() + 2, x->extents.end());
    }
  }
  const auto named = std::find_if(request.attributes.begin(), request.attributes.end(),
                                  [](const Attribute& attribute) { return attribute.name == "window"; });
  const auto* window = std::get_if<Ints>(&named->value);
  if (window == nullptr || window->empty()) {
    refuse(request, "the window is missing or not numbers", "add window=h,w (one number an axis) or window=global");
  }
  expand(request, "window", axes, 1);
  expand(request, "pad", axes, 2);
  expand(request, "stride", axes, 1);
  expand(request, "dilation", axes, 1);
}

WindowAxis pool_axis(const Request& request, std::string_view input, int i) {
  WindowAxis axis = steps_of(request).along(i);
  axis.extent = request.at(input).extents[2 + static_cast<size_t>(i)];
  axis.window = request.ints("window")[static_cast<size_t>(i)];
  return axis;
}

void check_pool_input(const Request& request, std::string_view input) {
  const int axes = spatial_axes(request, input);
  if (request.at(input).extents[1] < 1) refuse(request, fmt::format("{} has no channels", input), "");
  for (int i = 0; i < axes; ++i) check_axis(request, pool_axis(request, input, i), axis_name(i, axes));
}

void check_pool_output(const Request& request, std::string_view input, std::string_view output) {
  const TensorSpec &x = request.at(input), &y = request.at(output);
  if (y.rank() != x.rank()) {
    refuse(request, fmt::format("{} has {} and {} has {} dimensions", input, x.rank(), output, y.rank()),
           "they have equally many");
  }
  const int axes = x.rank() - 2;
  for (int i = 0; i < axes; ++i) {
    const WindowAxis axis = pool_axis(request, input, i);
    const int64_t floor = axis.outputs_floor(), ceil = axis.outputs_ceil();
    if (floor < 1 && ceil < 1) refuse_large_window(request, "window", axis, axis_name(i, axes), input);
    const int64_t given = y.extents[2 + static_cast<size_t>(i)];
    if (given < 1 || (given != floor && given != ceil)) {
      refuse(request, fmt::format("{} has extent {} along {}, expected {}", output, given, axis_name(i, axes), floor),
             ceil == floor ? "" : fmt::format("or {} in ceil mode", ceil));
    }
  }
  Ints expected = y.extents;
  expected[0] = x.extents[0];
  expected[1] = x.extents[1];
  require_extents(request, output, y, expected, fmt::format("N and C are those of {}", input));
}

std::optional<int64_t> pooled_positions(const Request& request, std::string_view operand) {
  const std::string_view pooled = pooled_operand(request, operand);
  if (pooled.empty()) return std::nullopt;
  const TensorSpec& x = request.at(pooled);
  int64_t positions = 1;
  for (int i = 2; i < x.rank(); ++i) positions *= x.extents[static_cast<size_t>(i)];
  return positions;
}

std::vector<WindowAxis> pooled_axes(const Request& request, std::string_view operand) {
  const std::string_view x = pooled_operand(request, operand);
  std::vector<WindowAxis> axes;
  for (int i = 0; i < request.at(x).rank() - 2; ++i) axes.push_back(pool_axis(request, x, i));
  return axes;
}

void check_pool_indices(const Request& request, std::string_view output) {
  const TensorSpec* indices = request.find("indices");
  if (indices == nullptr) return;
  require_extents(request, "indices", *indices, request.at(output).extents, fmt::format("those of {}", output));
  if (*pooled_positions(request, "indices") > std::numeric_limits<int32_t>::max()) {
    refuse(request, "a channel has more positions than i32 has numbers", "leave the indices out");
  }
}

void check_has_maxima(const Request& request) {
  if (request.find("indices") == nullptr || pool_mode_of(request) == PoolMode::max) return;
  refuse(request, "only maxima have indices", "leave them out, or use mode=max");
}

std::string pool_window_words(const Request& request, std::string_view input) {
  const Ints &window = request.ints("window"), &extents = request.at(input).extents;
  const bool is_global = std::equal(window.begin(), window.end(), extents.begin() + 2);
  return is_global ? "global" : per_axis_words(window);
}

PoolWindow pool_window_of(const Request& request) {
  PoolWindow view;
  static_cast<WindowSteps&>(view) = steps_of(request);
  view.window = request.ints("window");
  return view;
}

Pooling pooling_of(const Request& request) {
  Pooling view;
  static_cast<PoolWindow&>(view) = pool_window_of(request);
  view.mode = pool_mode_of(request);
  return view;
}

std::vector<Attribute> attributes_of(const Pooling& pooling) {
  std::vector<Attribute> all = attributes_of(static_cast<const PoolWindow&>(pooling));
  all.insert(all.begin(), {"mode", std::string(to_string(pooling.mode))});
  return all;
}

std::vector<Attribute> attributes_of(const PoolWindow& window) {
  return {{"window", window.window},
          {"pad", pads_of(window.pad_begin, window.pad_end)},
          {"stride", given_or(window.stride, 1)},
          {"dilation", given_or(window.dilation, 1)}};
}

}  // namespace kiln
