#include "conv/conv_parts.h"

#include <array>
#include <numeric>
#include <utility>

#include "gemm/gemm_parts.h"

namespace kiln::descriptor {
namespace {

constexpr size_t most_classes = 64;              // of a request
constexpr size_t classes_of_a_launch = 16;       // there is code for each
constexpr int64_t most_cuts = int64_t{1} << 22;  // of regions by taps: what it takes to count segments
constexpr const char* too_many_segments = "regions and taps cut dx into too many segments";
constexpr size_t most_segment_firsts = 8192;  // of all axes and classes: half of a kernel's constant memory

// Those of dx's positions along one axis that meet the same taps.
struct TapClass {
  WindowAxis axis;          // of the convolution of dy
  int64_t first_position;   // in dx; from there on every stride-th
  int64_t first_tap, step;  // taps of w, in memory order
  bool no_taps = false;
};

// The positions h with h + pad = `remainder` (mod stride); nothing if dx has none.
std::optional<TapClass> tap_class(const WindowAxis& forward, int64_t remainder, bool mirrored) {
  const int64_t stride = forward.stride;
  TapClass result{};
  result.first_position = ((remainder - forward.pad_begin) % stride + stride) % stride;
  if (result.first_position >= forward.extent) return std::nullopt;
  result.axis.extent = forward.outputs;
  result.axis.outputs = (forward.extent - result.first_position + stride - 1) / stride;

  // Taps r with r * dilation = remainder (mod stride) are `step` apart.
  const int64_t common = std::gcd(stride, forward.dilation);
  result.step = stride / common;
  int64_t first = 0;
  while (first < std::min(result.step, forward.window) && (first * forward.dilation - remainder) % stride != 0) ++first;
  if (first >= std::min(result.step, forward.window)) {
    result.no_taps = true;
    result.step = 1;
  } else {
    // Tap number j belongs to the output at position + base - j * dilation: the convolution meets taps backwards.
    result.axis.window = (forward.window - 1 - first) / result.step + 1;
    result.axis.dilation = forward.dilation / common;
    const int64_t base = (result.first_position + forward.pad_begin - first * forward.dilation) / stride;
    result.axis.pad_begin = (result.axis.window - 1) * result.axis.dilation - base;
    const int64_t last = first + (result.axis.window - 1) * result.step;
    result.first_tap = mirrored ? forward.window - 1 - last : first;
  }
  result.axis.pad_end = result.axis.outputs + result.axis.reach() - 1 - result.axis.extent - result.axis.pad_begin;
  return result;
}

std::vector<TapClass> tap_classes(const WindowAxis& forward, bool mirrored) {
  std::vector<TapClass> classes;
  for (int64_t remainder = 0; remainder < forward.stride && classes.size() <= most_classes; ++remainder) {
    if (auto one = tap_class(forward, remainder, mirrored)) classes.push_back(*one);
  }
  return classes;
}

void swap_first_two(TensorSpec& spec) {
  std::swap(spec.extents[0], spec.extents[1]);
  std::swap(spec.strides[0], spec.strides[1]);
}

bool needs_64_bits(std::initializer_list<const TensorSpec*> operands, const SpatialAxes& forward,
                   const SpatialAxes& axes) {
  return needs_wide_index(operands) || !coordinates_fit_int(forward) || !coordinates_fit_int(axes);
}

std::array<RegionAxis, 3> in_order(const SpatialRegions& regions) {
  return {regions.planes, regions.rows, regions.columns};
}

// Gives each region blocks of its own, whose taps are the outputs of the region: of the gradient by the filters.
void divide_taps(ConvProblem& conv, const SpatialRegions& regions, int64_t region_stride) {
  conv.region_axes = regions;
  conv.divided = Divided::taps;
  WindowAxis* const axes[] = {&conv.planes, &conv.rows, &conv.columns};
  for (size_t i = 0; i < 3; ++i) {
    axes[i]->window = in_order(regions)[i].longest();
    conv.w.extents[dimension::plane + i] = axes[i]->window;
  }
  conv.w.alignment = size_of(conv.w.dtype);  // regions begin anywhere
  conv.y_region_stride = region_stride;
  conv.y.alignment = alignment_at(conv.y.alignment, region_stride * size_of(conv.y.dtype));
}

// Gives each segment of y blocks of its own, which read the filters of the regions that its taps meet in dy.
void divide_inputs(ConvProblem& conv, const SpatialRegions& regions, int64_t region_stride) {
  conv.region_axes = regions;
  conv.divided = Divided::inputs;
  conv.segments = Segments::of(conv, regions);
  conv.w_region_stride = region_stride;
  conv.w.alignment = alignment_at(conv.w.alignment, region_stride * size_of(conv.w.dtype));
  conv.pointwise = false;  // whose pixels are those of x in one row
}

// Keeps every `stride`-th position of `one` along a dimension of dx, or of a residual; the elements before the first.
int64_t take_every(int64_t stride, const TapClass& one, size_t dimension, TensorSpec& spec) {
  const int64_t first = one.first_position * spec.strides[dimension];
  spec.extents[dimension] = one.axis.outputs;
  spec.strides[dimension] *= stride;
  return first;
}

void begin_at(int64_t first, TensorSpec& spec) {
  spec.alignment = alignment_at(spec.alignment, first * size_of(spec.dtype));
}

ConvPart data_part(const ConvBackwardData& data, const SpatialAxes& forward, const std::array<TapClass, 3>& classes) {
  ConvPart part{problem_of(data), {"dy"}, {"w"}, {"dx"}};
  ConvProblem& conv = part.conv;
  conv.x = with_three_axes(data.dy);
  conv.w = with_three_axes(without_regions(data.w, data.axes()));
  conv.y = with_three_axes(data.dx);
  conv.bias = data.bias;
  if (data.residual) conv.residual = with_three_axes(*data.residual);
  conv.epilogue = data.epilogue;
  conv.w_group_stride = data.k_per_group() * conv.w.strides[0];
  conv.w.extents = {data.c(), data.k_per_group(), 0, 0, 0};
  std::swap(conv.w.strides[0], conv.w.strides[1]);
  conv.mirrored = !data.mirrored;
  for (size_t i = 0; i < classes.size(); ++i) {
    const TapClass& one = classes[i];
    const size_t dimension = dimension::plane + i;
    conv.w_first += one.first_tap * conv.w.strides[dimension];
    conv.w.extents[dimension] = one.axis.window;
    conv.w.strides[dimension] *= one.step;
    const int64_t stride = std::array{forward.planes, forward.rows, forward.columns}[i].stride;
    conv.y_first += take_every(stride, one, dimension, conv.y);
    if (conv.residual) conv.residual_first += take_every(stride, one, dimension, *conv.residual);
    conv.no_taps = conv.no_taps || one.no_taps;
  }
  static_cast<SpatialAxes&>(conv) = {classes[0].axis, classes[1].axis, classes[2].axis};
  conv.x_group_stride = data.k_per_group() * conv.x.strides[dimension::channel];
  conv.w.alignment = alignment_at(conv.w.alignment, conv.w_first * size_of(conv.w.dtype));
  if (conv.groups > 1) {
    conv.w.alignment = alignment_at(conv.w.alignment, conv.w_group_stride * size_of(conv.w.dtype));
  }
  begin_at(conv.y_first, conv.y);
  if (conv.residual) begin_at(conv.residual_first, *conv.residual);
  conv.wide_index = needs_64_bits({&data.dy, &data.w, &data.dx}, forward, conv) ||
                    (data.residual && needs_wide_index({&*data.residual}));
  conv.read_layouts();
  if (!data.grid.empty()) {
    divide_inputs(conv, SpatialRegions::of(data.regions(), data.axes()), region_stride(data.w, data.axes(), data.k()));
  }
  return part;
}

ConvParts data_parts(const ConvBackwardData& data) {
  ConvParts parts;
  const SpatialAxes forward = axes_of(data);
  if (!data.grid.empty() && data.regions().count() > most_cuts / forward.taps()) {
    parts.refusal = too_many_segments;
    return parts;
  }
  const std::vector<TapClass> planes = tap_classes(forward.planes, data.mirrored),
                              rows = tap_classes(forward.rows, data.mirrored),
                              columns = tap_classes(forward.columns, data.mirrored);
  if (planes.size() * rows.size() * columns.size() > most_classes) {
    parts.refusal = "the strides make more than 64 classes of taps, with code for each";
    return parts;
  }
  for (const TapClass& plane : planes) {
    for (const TapClass& row : rows) {
      for (const TapClass& column : columns) parts.list.push_back(data_part(data, forward, {plane, row, column}));
    }
  }
  size_t segment_firsts = 0;
  for (const ConvPart& part : parts.list) {
    for (const std::vector<int64_t>& firsts : part.conv.segments.firsts) segment_firsts += firsts.size();
  }
  if (segment_firsts > most_segment_firsts) parts.refusal = too_many_segments;
  // The lanes of all classes run in one direction.
  for (ConvPart& part : parts.list) part.conv.y_along_k = parts.list.front().conv.y_along_k;
  return parts;
}

// The axis of the convolution whose y is dw. A mirrored filter has its taps backwards, so y is met backwards.
WindowAxis filter_axis(const WindowAxis& forward, bool mirrored) {
  WindowAxis axis;
  axis.extent = forward.extent;
  axis.window = forward.outputs;
  axis.outputs = forward.window;
  axis.dilation = forward.stride;
  axis.stride = mirrored ? -forward.dilation : forward.dilation;
  axis.pad_begin = forward.pad_begin - (mirrored ? forward.reach() - 1 : 0);
  axis.pad_end = (axis.outputs - 1) * axis.stride + axis.reach() - axis.extent - axis.pad_begin;
  return axis;
}

ConvParts filter_parts(const ConvBackwardFilter& filter) {
  ConvParts parts;
  constexpr int64_t most_products = (int64_t{1} << 31) - 1;  // of an element of dw
  if (filter.dynamic_batch) parts.refusal = "the batch is what is summed over: it must be fixed";
  if (filter.n() == 0) parts.refusal = "the batch is empty: there is nothing to multiply";
  if (filter.n() > 0 && filter.dy.elements() / filter.k() > most_products) {
    parts.refusal = "an element of dw has 2^31 products or more";
  }
  if (parts.refusal) return parts;

  ConvPart part{problem_of(filter), {"x"}, {"dy"}, {"dw"}};
  ConvProblem& conv = part.conv;
  const SpatialAxes forward = axes_of(filter);
  conv.x = with_three_axes(filter.x);
  conv.w = with_three_axes(filter.dy);
  conv.y = with_three_axes(without_regions(filter.dw, filter.axes()));
  for (TensorSpec* spec : {&conv.x, &conv.w, &conv.y}) swap_first_two(*spec);
  conv.x.extents[0] = filter.c_per_group();
  conv.y.extents[1] = filter.k();
  conv.mirrored = false;
  static_cast<SpatialAxes&>(conv) = {filter_axis(forward.planes, filter.mirrored),
                                     filter_axis(forward.rows, filter.mirrored),
                                     filter_axis(forward.columns, filter.mirrored)};
  conv.x_group_stride = filter.c_per_group() * filter.x.strides[1];
  conv.w_group_stride = filter.k_per_group() * filter.dy.strides[1];
  if (conv.groups > 1) {
    conv.x.alignment = alignment_at(conv.x.alignment, conv.x_group_stride * size_of(conv.x.dtype));
  }
  conv.wide_index = needs_64_bits({&filter.x, &filter.dy, &filter.dw}, forward, conv);
  if (!filter.grid.empty()) {
    divide_taps(conv, SpatialRegions::of(filter.regions(), filter.axes()),
                region_stride(filter.dw, filter.axes(), filter.k()));
  }
  conv.read_layouts();
  conv.images_inner = !conv.channels_inner && dimension_0_is_inner(conv.x, dimension::plane);
  conv.images_are_channels = true;
  parts.list.push_back(std::move(part));
  return parts;
}

ConvParts forward_parts(const Request& request) {
  ConvParts parts;
  parts.list.push_back({ConvProblem::of(request), {"x"}, {"w"}, {"y"}});
  ConvProblem& conv = parts.list.front().conv;
  if (conv.grid.empty()) return parts;
  conv.w.extents[0] = conv.k();
  divide_pixels(conv, conv.w_region_stride);
  return parts;
}

ConvParts parts_of(const Request& request) {
  if (request.operation.ends_with("conv_backward_data")) return data_parts(ConvBackwardData::of(request));
  if (request.operation.ends_with("conv_backward_filter")) return filter_parts(ConvBackwardFilter::of(request));
  if (request.operation == "gemm") return gemm_parts(Gemm::of(request));
  return forward_parts(request);
}

int64_t products(const ConvProblem& conv) {
  return conv.no_taps ? 0 : conv.taps() * conv.pixels_per_image();
}

}  // namespace

ConvProblem problem_of(const ConvPass& pass) {
  ConvProblem conv;
  conv.groups = pass.groups;
  conv.mirrored = pass.mirrored;
  conv.arithmetic = pass.arithmetic;
  conv.blend = pass.blend;
  conv.dynamic_batch = pass.dynamic_batch;
  return conv;
}

void divide_pixels(ConvProblem& conv, int64_t region_stride) {
  conv.divided = Divided::pixels;
  conv.w_region_stride = region_stride;
  conv.w.alignment = alignment_at(conv.w.alignment, region_stride * size_of(conv.w.dtype));
  WindowAxis* const axes[] = {&conv.planes, &conv.rows, &conv.columns};
  for (size_t i = 0; i < 3; ++i) axes[i]->outputs = in_order(conv.region_axes)[i].longest();
  for (TensorSpec* spec : {&conv.y, conv.residual ? &*conv.residual : &conv.y}) {
    for (size_t i = 0; i < 3; ++i) spec->extents[dimension::plane + i] = axes[i]->outputs;
  }
  conv.read_layouts();
  // Rows of a region end anywhere.
  if (!conv.region_axes.even() && !conv.y_along_k) conv.y.alignment = size_of(conv.y.dtype);
  conv.pointwise = false;  // whose pixels are all of x
}

ConvParts ConvParts::of(const Request& request) {
  ConvParts parts = parts_of(request);
  if (request.blend.alpha == Scale::zero) parts.refusal = "alpha is zero: there is nothing to multiply";
  for (size_t i = 0; i < parts.list.size(); ++i) {
    if (products(parts.list[i].conv) > products(parts.main())) parts.main_part = i;
  }
  return parts;
}

std::optional<std::string> parts_refusal(const ConvParts& parts,
                                         std::optional<std::string> (*refusal)(const ConvProblem&)) {
  return parts.refusal ? parts.refusal : refusal(parts.main());
}

Program with_operands_of(const ConvPart& part, Program program) {
  for (Step& step : program.steps) {
    auto* launch = std::get_if<Launch>(&step);
    if (launch == nullptr) continue;
    for (Argument& argument : launch->arguments) {
      auto* operand = std::get_if<OperandArgument>(&argument);
      if (operand == nullptr) continue;
      if (operand->name == "x") {
        operand->name = part.x;
      } else if (operand->name == "w") {
        operand->name = part.w;
      } else if (operand->name == "y") {
        operand->name = part.y;
      }
    }
  }
  return program;
}

int64_t launches_of(const ConvParts& parts) {
  return static_cast<int64_t>((parts.list.size() + classes_of_a_launch - 1) / classes_of_a_launch);
}

Program divided(const std::vector<Prelude>& preludes, const std::vector<Launch>& launches, const Emitter& emit) {
  Program program;
  for (size_t first = 0; first < preludes.size(); first += classes_of_a_launch) {
    const size_t count = std::min(classes_of_a_launch, preludes.size() - first);
    const auto begin = preludes.begin() + static_cast<std::ptrdiff_t>(first);
    for (Launch launch : launches) {
      launch.source = program.sources.size();
      launch.grid[1].fixed = launch.grid[1].fixed / static_cast<int64_t>(preludes.size()) * static_cast<int64_t>(count);
      program.steps.emplace_back(std::move(launch));
    }
    program.sources.push_back(emit.source(Prelude::of_classes({begin, begin + static_cast<std::ptrdiff_t>(count)})));
  }
  return program;
}

bool is_larger(const Count& a, const Count& b) {
  return (a.fixed + a.per_n) * b.divisor > (b.fixed + b.per_n) * a.divisor;
}

bool grid_fits(const std::array<Count, 3>& grid, const ConvParts& parts) {
  constexpr int64_t most_blocks = (int64_t{1} << 31) - 1, most_in_y = 65535;
  const int64_t n = parts.main().n();
  return grid[1].at(n) <= most_in_y && grid[2].at(n) <= most_in_y &&
         grid[0].at(n) <= most_blocks / std::max<int64_t>(1, grid[1].at(n));
}

}  // namespace kiln::descriptor
