#include "operations/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "operations/spatial.h"

namespace kiln {

using Ints = std::vector<int64_t>;

const std::vector<AttributeDefinition>& convolution_attributes() {
  static const std::vector<AttributeDefinition> definitions = {
      {"pad", Ints{0}, Printing::always, {}, "begins, then ends: top,left,bottom,right in 2-D"},
      {"stride", Ints{1}, Printing::always, {}, "one value an axis: h,w in 2-D"},
      {"dilation", Ints{1}, Printing::always, {}, "one value an axis: h,w in 2-D"},
      {"groups", Ints{1}, Printing::always, {}, "channel groups"},
      {"mode",
       std::string("cross_correlation"),
       Printing::when_set,
       {"cross_correlation", "convolution"},
       "convolution mirrors the filter"},
  };
  return definitions;
}

void complete_convolution_attributes(Request& request, int axes) {
  const auto count = static_cast<size_t>(axes);
  expand(request, "pad", count, 2);
  expand(request, "stride", count, 1);
  expand(request, "dilation", count, 1);
  expand(request, "groups", 1, 1);
}

WindowAxis convolution_axis(const Request& request, const ConvNames& names, int axis) {
  const auto i = static_cast<size_t>(axis);
  const auto extent = [&](std::string_view name) {
    const TensorSpec* spec = request.find(name);
    return spec == nullptr || spec->extents.size() <= 2 + i ? int64_t{1} : spec->extents[2 + i];
  };
  WindowAxis result = steps_of(request).along(axis);
  result.extent = extent(names.x);
  result.window = extent(names.w);
  result.outputs = extent(names.y);
  return result;
}

void check_convolution_filter(const Request& request, const ConvNames& names, std::string_view like, int axes,
                              int64_t channels) {
  const TensorSpec& w = request.at(names.w);
  if (w.rank() != axes + 2) {
    refuse(request, fmt::format("{} has {} and {} has {} dimensions", like, axes + 2, names.w, w.rank()),
           fmt::format("{} is K,C/groups and a window for each spatial axis of {}", names.w, like));
  }
  const int64_t groups = request.ints("groups").front();
  if (groups < 1 || channels < 1 || channels % groups != 0) {
    refuse(request, fmt::format("groups={} does not divide the {} channels of {}", groups, channels, names.x),
           fmt::format("give 1 or more groups that divide the channels of {} and the filters of {}", names.x, names.w));
  }
  if (w.extents[0] < 1 || w.extents[0] % groups != 0) {
    refuse(request, fmt::format("groups={} does not divide the {} filters of {}", groups, w.extents[0], names.w),
           fmt::format("give 1 or more groups that divide the channels of {} and the filters of {}", names.x, names.w));
  }
  if (w.extents[1] != channels / groups) {
    refuse(request, fmt::format("{} has {} channels per filter, expected {}", names.w, w.extents[1], channels / groups),
           fmt::format("{} has {} channels in {} groups", names.x, channels, groups));
  }
  for (int i = 0; i < axes; ++i) check_axis(request, convolution_axis(request, names, i), axis_name(i, axes));
}

Ints convolution_extents(const Request& request, const ConvNames& names) {
  const TensorSpec& x = request.at(names.x);
  Ints extents{x.extents[0], request.at(names.w).extents[0]};
  for (int i = 0; i < x.rank() - 2; ++i) extents.push_back(convolution_axis(request, names, i).outputs_floor());
  return extents;
}

void check_convolution_output(const Request& request, const ConvNames& names) {
  const Ints expected = convolution_extents(request, names);
  if (std::any_of(expected.begin() + 2, expected.end(), [](int64_t extent) { return extent < 1; })) {
    refuse(request, "the filter does not fit into the padded input", "pad more or use a smaller filter");
  }
  require_extents(request, names.y, request.at(names.y), expected,
                  fmt::format("from {}, {}, pad, stride and dilation", names.x, names.w));
}

double convolution_flops(int64_t outputs, const TensorSpec& w) {
  const int64_t products = w.elements() / std::max<int64_t>(w.extents[0], 1);  // of an element of y
  return 2.0 * static_cast<double>(outputs) * static_cast<double>(products);
}

ConvPass conv_pass_of(const Request& request) {
  ConvPass pass;
  static_cast<WindowSteps&>(pass) = steps_of(request);
  pass.groups = request.ints("groups").front();
  pass.mirrored = request.word("mode") == "convolution";
  pass.arithmetic = request.arithmetic;
  pass.blend = request.blend;
  pass.dynamic_batch = request.dynamic_batch;
  return pass;
}

void add_conv_pass(Request& request, const ConvPass& pass) {
  request.attributes = {{"pad", pads_of(pass.pad_begin, pass.pad_end)},
                        {"stride", given_or(pass.stride, 1)},
                        {"dilation", given_or(pass.dilation, 1)},
                        {"groups", Ints{pass.groups}},
                        {"mode", std::string(pass.mirrored ? "convolution" : "cross_correlation")}};
  request.arithmetic = pass.arithmetic;
  request.blend = pass.blend;
  request.dynamic_batch = pass.dynamic_batch;
}

}  // namespace kiln
