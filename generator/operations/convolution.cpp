#include "operations/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "operations/short_form.h"
#include "operations/spatial.h"
#include "text_parsing.h"

namespace kiln {

using Ints = std::vector<int64_t>;

namespace {

constexpr std::string_view local_prefix = "local_";

std::vector<AttributeDefinition> shared_attributes() {
  return {
      {"pad",
       Ints{0},
       Printing::always,
       {},
       "elements of zero on each side of each axis: top,left,bottom,right in 2-D"},
      {"stride", Ints{1}, Printing::always, {}, "steps of the window along each axis: h,w in 2-D"},
      {"dilation", Ints{1}, Printing::always, {}, "distance between filter elements along each axis: h,w in 2-D"},
      {"groups", Ints{1}, Printing::always, {}, "divides C and K; the convolution is depthwise if it equals C"},
      {"mode",
       std::string("cross_correlation"),
       Printing::when_set,
       {"cross_correlation", "convolution"},
       "cross_correlation is what frameworks call convolution; convolution mirrors the filter"},
  };
}

std::vector<AttributeDefinition> local_attributes() {
  std::vector<AttributeDefinition> all = shared_attributes();
  all.push_back({"grid", Ints{0}, Printing::always, {}, "regions along each axis: h,w in 2-D; 0: one for each output"});
  return all;
}

bool is_local(const Request& request) {
  return request.operation.starts_with(local_prefix);
}

// Whether the w of a request, whose steps are complete, has a dimension for the regions.
bool has_regions(const Request& request, const ConvNames& names) {
  const TensorSpec* w = request.find(names.w);
  return is_local(request) && w != nullptr && has_regions(*w, static_cast<int>(request.ints("stride").size()));
}

// The grid of a complete request; empty if its filters are shared.
Ints grid_of(const Request& request) {
  return is_local(request) ? request.ints("grid") : Ints{};
}

// Outputs along `axis`: of y, or of what y will be.
int64_t outputs_along(const Request& request, const ConvNames& names, int axis, int axes) {
  const WindowAxis window = convolution_axis(request, names, axis);
  check_axis(request, window, axis_name(axis, axes));
  return request.find(names.y) == nullptr ? window.outputs_floor() : window.outputs;
}

[[noreturn]] void refuse_filter_that_does_not_fit(const Request& request, const ConvNames& names, int axis, int axes) {
  refuse_large_window(request, "filter", convolution_axis(request, names, axis), axis_name(axis, axes), names.x);
}

void complete_grid(Request& request, const ConvNames& names, int axes) {
  expand(request, "grid", static_cast<size_t>(axes), 1);
  Ints grid = request.ints("grid");
  for (int i = 0; i < axes; ++i) {
    int64_t& regions = grid[static_cast<size_t>(i)];
    if (regions == 0) regions = outputs_along(request, names, i, axes);
  }
  set_ints(request, "grid", std::move(grid));
}

}  // namespace

const std::vector<AttributeDefinition>& convolution_attributes(Filters filters) {
  static const std::vector<AttributeDefinition> shared = shared_attributes(), local = local_attributes();
  return filters == Filters::local ? local : shared;
}

OperandDefinition filter_operand(std::string name, Role role, Filters filters, DTypes dtypes) {
  if (filters == Filters::shared) {
    return {.name = std::move(name),
            .role = role,
            .batched = false,
            .extents = "K C/groups S; K C/groups R S; K C/groups T R S",
            .dtypes = dtypes};
  }
  return {.name = std::move(name),
          .role = role,
          .batched = false,
          .extents = "regions*K C/groups S; regions*K C/groups R S; regions*K C/groups T R S",
          .summary =
              "K filters for each region, region after region; or the regions are a dimension of their own in front of "
              "K, with any stride",
          .dtypes = dtypes};
}

void complete_convolution_attributes(Request& request, const ConvNames& names, int axes) {
  const auto count = static_cast<size_t>(axes);
  expand(request, "pad", count, 2);
  expand(request, "stride", count, 1);
  expand(request, "dilation", count, 1);
  expand(request, "groups", 1, 1);
  if (is_local(request)) complete_grid(request, names, axes);
}

WindowAxis convolution_axis(const Request& request, const ConvNames& names, int axis) {
  const auto i = static_cast<size_t>(axis);
  const auto extent = [&](std::string_view name, size_t first = 2) {
    const TensorSpec* spec = request.find(name);
    return spec == nullptr || spec->extents.size() <= first + i ? int64_t{1} : spec->extents[first + i];
  };
  WindowAxis result = steps_of(request).along(axis);
  result.extent = extent(names.x);
  result.window = extent(names.w, has_regions(request, names) ? 3 : 2);
  result.outputs = extent(names.y);
  return result;
}

int64_t filter_channels(const Request& request, const ConvNames& names) {
  return request.at(names.w).extents[has_regions(request, names) ? 2 : 1];
}

int64_t filters_of(const Request& request, const ConvNames& names) {
  const Ints grid = grid_of(request);
  const int axes = static_cast<int>(grid.size());
  const TensorSpec& w = request.at(names.w);
  const bool apart = has_regions(request, names);
  const int64_t filters = w.extents[0];  // or regions
  int64_t regions = 1;
  for (int i = 0; i < axes; ++i) {
    const int64_t count = grid[static_cast<size_t>(i)], outputs = outputs_along(request, names, i, axes);
    if (outputs < 1) refuse_filter_that_does_not_fit(request, names, i, axes);
    if (count < 1 || count > outputs) {
      refuse(request, fmt::format("grid has {} regions along {}", count, axis_name(i, axes)),
             fmt::format("it must lie between 1 and {}, or be 0 for a region for each of as many outputs", outputs));
    }
    regions = count > filters / regions ? filters + 1 : regions * count;  // no more: it might not fit
    if (regions > filters) break;
  }
  if (apart && regions != filters) {
    refuse(request, fmt::format("{} has {} regions, grid has {}", names.w, filters, text::join(grid, "x")),
           fmt::format("with {} dimensions {} is regions,K,C/groups and a window", w.rank(), names.w));
  }
  if (axes > 0 && (regions > filters || filters % regions != 0)) {
    refuse(request, fmt::format("{} has {} filters for {} regions", names.w, filters, text::join(grid, "x")),
           fmt::format("{} has equally many for each region, region after region", names.w));
  }
  return apart ? w.extents[1] : filters / regions;
}

void check_convolution_filter(const Request& request, const ConvNames& names, std::string_view like, int axes,
                              int64_t channels) {
  const TensorSpec& w = request.at(names.w);
  if (w.rank() != axes + 2 && !has_regions(request, names)) {
    refuse(request, fmt::format("{} has {} and {} has {} dimensions", like, axes + 2, names.w, w.rank()),
           fmt::format("{} is K,C/groups and a window for each spatial axis of {}{}", names.w, like,
                       is_local(request) ? ", or has the regions before K" : ""));
  }
  const int64_t groups = request.ints("groups").front();
  if (groups > 0 && channels < 1) refuse(request, fmt::format("{} has no channels", names.x), "");
  if (groups < 1 || channels % groups != 0) {
    refuse(request, fmt::format("groups={} does not divide the {} channels of {}", groups, channels, names.x),
           fmt::format("give 1 or more groups that divide the channels of {} and the filters of {}", names.x, names.w));
  }
  const int64_t filters = filters_of(request, names);
  if (filters < 1) refuse(request, fmt::format("{} has no filters", names.w), "give 1 or more");
  if (filters % groups != 0) {
    refuse(request, fmt::format("groups={} does not divide the {} filters of {}", groups, filters, names.w),
           fmt::format("give 1 or more groups that divide the channels of {} and the filters of {}", names.x, names.w));
  }
  const int64_t filter = filter_channels(request, names);
  if (filter != channels / groups) {
    refuse(request, fmt::format("{} has {} channels per filter, expected {}", names.w, filter, channels / groups),
           fmt::format("{} has {} channels in {} group{}", names.x, channels, groups, groups == 1 ? "" : "s"));
  }
  for (int i = 0; i < axes; ++i) check_axis(request, convolution_axis(request, names, i), axis_name(i, axes));
}

Ints convolution_extents(const Request& request, const ConvNames& names) {
  const TensorSpec& x = request.at(names.x);
  Ints extents{x.extents[0], filters_of(request, names)};
  for (int i = 0; i < x.rank() - 2; ++i) extents.push_back(convolution_axis(request, names, i).outputs_floor());
  return extents;
}

void check_convolution_output(const Request& request, const ConvNames& names) {
  const Ints expected = convolution_extents(request, names);
  const int axes = static_cast<int>(expected.size()) - 2;
  for (int i = 0; i < axes; ++i) {
    if (expected[static_cast<size_t>(i) + 2] < 1) refuse_filter_that_does_not_fit(request, names, i, axes);
  }
  require_extents(request, names.y, request.at(names.y), expected,
                  fmt::format("from {}, {}, pad, stride and dilation", names.x, names.w));
}

double convolution_flops(const TensorSpec& y, const TensorSpec& w) {
  double flops = 2.0 * static_cast<double>(y.elements());
  for (auto extent = w.extents.end() - y.rank() + 1; extent != w.extents.end(); ++extent) {
    flops *= static_cast<double>(*extent);
  }
  return flops;
}

std::string convolution_words(const Request& request, std::string_view filter) {
  const ConvPass pass = conv_pass_of(request);
  const Ints& extents = request.at(filter).extents;
  const Ints window(extents.end() - static_cast<std::ptrdiff_t>(pass.stride.size()), extents.end());
  std::string text = fmt::format(", {}{}", text::join(window, "x"), steps_words(pass));
  if (pass.dilation != Ints(pass.dilation.size(), 1)) {
    text += fmt::format(", dilation {}", per_axis_words(pass.dilation));
  }
  if (pass.groups != 1) text += fmt::format(", groups {}", pass.groups);
  if (!pass.grid.empty()) text += fmt::format(", grid {}", text::join(pass.grid, "x"));
  return text;
}

ConvPass conv_pass_of(const Request& request) {
  ConvPass pass;
  static_cast<WindowSteps&>(pass) = steps_of(request);
  pass.groups = request.ints("groups").front();
  pass.mirrored = request.word("mode") == "convolution";
  pass.grid = grid_of(request);
  pass.arithmetic = request.arithmetic;
  pass.blend = request.blend;
  pass.dynamic_batch = request.dynamic_batch;
  pass.constant_weights = request.constant_weights;
  return pass;
}

void add_conv_pass(Request& request, std::string_view operation, const ConvPass& pass) {
  request.operation = pass.grid.empty() ? operation : fmt::format("{}{}", local_prefix, operation);
  request.attributes = {{"pad", pads_of(pass.pad_begin, pass.pad_end)},
                        {"stride", given_or(pass.stride, 1)},
                        {"dilation", given_or(pass.dilation, 1)},
                        {"groups", Ints{pass.groups}},
                        {"mode", std::string(pass.mirrored ? "convolution" : "cross_correlation")}};
  if (!pass.grid.empty()) request.attributes.push_back({"grid", pass.grid});
  request.arithmetic = pass.arithmetic;
  request.blend = pass.blend;
  request.dynamic_batch = pass.dynamic_batch;
  request.constant_weights = pass.constant_weights;
}

TensorSpec without_regions(const TensorSpec& w, int axes) {
  TensorSpec filters = w;
  if (!has_regions(w, axes)) return filters;
  filters.extents.erase(filters.extents.begin());
  filters.strides.erase(filters.strides.begin());
  filters.extents.front() = w.extents[0] * w.extents[1];
  return filters;
}

int64_t region_stride(const TensorSpec& w, int axes, int64_t k) {
  return has_regions(w, axes) ? w.strides[0] : k * w.strides[0];
}

RegionGrid::RegionGrid(const ConvPass& pass, const TensorSpec& y) {
  for (size_t i = 0; i + 2 < y.extents.size(); ++i) {
    axes_.push_back({y.extents[2 + i], pass.grid.empty() ? 1 : pass.grid[i]});
  }
}

int64_t RegionGrid::count() const {
  int64_t count = 1;
  for (const RegionAxis& axis : axes_) count *= axis.regions;
  return count;
}

int64_t RegionGrid::region_of(std::span<const int64_t> position) const {
  int64_t region = 0;
  for (size_t i = 0; i < axes_.size(); ++i) region = region * axes_[i].regions + axes_[i].region_of(position[i]);
  return region;
}

}  // namespace kiln
