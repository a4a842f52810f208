#include "conv/conv_contractions.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "descriptor/numbers.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"

namespace kiln::descriptor {
namespace {

constexpr size_t most_classes = 64;              // of a request
constexpr int64_t most_cuts = int64_t{1} << 22;  // of regions by taps: what it takes to count segments
constexpr const char* too_many_segments = "regions and taps cut dx into too many segments";
constexpr size_t most_segment_firsts = 8192;  // of all axes and classes: half of a kernel's constant memory

bool needs_64_bits(std::initializer_list<const TensorSpec*> operands, const SpatialAxes& forward,
                   const SpatialAxes& axes) {
  return needs_wide_index(operands) || !coordinates_fit_int(forward) || !coordinates_fit_int(axes);
}

// Positions of dx along one axis that meet the same taps.
struct TapClass {
  WindowAxis axis;          // of the convolution of dy
  int64_t first_position;   // in dx; from there on every stride-th
  int64_t first_tap, step;  // taps of w, in memory order
  bool no_taps = false;
};

// The x from 0 to below `modulus` with number * x = 1 (mod modulus). The two have no common divisor.
int64_t inverse(int64_t number, int64_t modulus) {
  int64_t rest = modulus, next_rest = number % modulus, x = 0, next_x = 1;  // x * number = rest (mod modulus)
  while (next_rest != 0) {
    const int64_t quotient = rest / next_rest;
    rest = std::exchange(next_rest, rest - quotient * next_rest);
    x = std::exchange(next_x, x - quotient * next_x);
  }
  return x < 0 ? x + modulus : x;
}

// Class of every stride-th position from `first_position` on, which is below the stride and the extent.
TapClass tap_class(const WindowAxis& forward, int64_t first_position, bool mirrored) {
  const int64_t stride = forward.stride, remainder = first_position + forward.pad_begin;
  TapClass result{};
  result.first_position = first_position;
  result.axis.extent = forward.outputs;
  result.axis.outputs = ceil_div(forward.extent - result.first_position, stride);

  // Taps r with r * dilation = remainder (mod stride) are `step` apart.
  const int64_t common = std::gcd(stride, forward.dilation);
  result.step = stride / common;
  const int64_t first =
      remainder / common % result.step * inverse(forward.dilation / common, result.step) % result.step;
  if (remainder % common != 0 || first >= forward.window) {
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

// In the order of (position + pad) mod stride. Loops over what dx has: a stride may be far larger.
std::vector<TapClass> tap_classes(const WindowAxis& forward, bool mirrored) {
  const int64_t stride = forward.stride, count = std::min(stride, forward.extent);
  const int64_t start = std::min((stride - forward.pad_begin % stride) % stride, count);
  std::vector<TapClass> classes;
  for (int64_t i = 0; i < count && classes.size() <= most_classes; ++i) {
    classes.push_back(tap_class(forward, (start + i) % count, mirrored));
  }
  return classes;
}

void swap_first_two(TensorSpec& spec) {
  std::swap(spec.extents[0], spec.extents[1]);
  std::swap(spec.strides[0], spec.strides[1]);
}

// Keeps every `stride`-th position of `one` along a dimension of dx, or of a residual; the elements before the first.
int64_t take_every(int64_t stride, const TapClass& one, size_t dimension, TensorSpec& spec) {
  const int64_t first = one.first_position * spec.strides[dimension];
  spec.extents[dimension] = one.axis.outputs;
  spec.strides[dimension] *= stride;
  return first;
}

// ---- taps as channels: filters as large as their stride, such as patch embeddings, or several times as large
//
//   w: 4 x 4 taps, stride 4, C channels        x: a row of pixels, channels inner
//
//      one tap after the other: C products       |C C C C|C C C C|C C C C|
//      merged: 4 taps, of 4 C channels each       window  window  window
//
// A window's elements in one row of x are one run, and so are those of w: the convolution is one with S times as many
// channels and a window of one column. Kernels then copy whole runs. With 8 x 8 taps the windows are two such runs, and
// overlap in one: a convolution of 4 C channels and two columns, with a stride of one.
//
// Elements that become channels, along one axis: how many in each place, the places that are left in x and in w, and
// those of the padding ahead of x.
struct Phases {
  int64_t count, in_x, in_w, padding = 0;
};
// Phases of an axis; nothing where there are none.
using FindPhases = std::optional<Phases> (*)(const WindowAxis&);

// The input, or its gradient, and the filters of a convolution without groups, both with three spatial axes, and the
// axes of its windows.
struct MergedOperands {
  SpatialAxes axes;
  TensorSpec x, w;  // N C D H W, K C T R S

  // Merges the phases along each axis where they stand side by side in x and in w. Whether there is such an axis.
  bool merge(FindPhases find);
  // The same where pixels are inner: channels become the taps of an axis that is free, those of a row become channels.
  // `run`: pixels of a row that one place has.
  bool merge_rows_of_pixels(FindPhases find, int64_t run);

 private:
  bool merge(FindPhases find, WindowAxis& axis, size_t dimension);
};

constexpr int64_t shortest_run = 8;  // pixels of a row that are worth an axis of channels

// Whether windows begin in x, end in x and have no element in common.
bool tiles_x(const WindowAxis& axis) {
  return axis.pad_begin == 0 && axis.dilation == 1 && (axis.outputs == 1 || axis.stride == axis.window) &&
         axis.outputs * axis.window <= axis.extent;
}

// Elements from one channel to the next; with one channel, from one tap along `dimension`.
int64_t channel_stride(const TensorSpec& spec, size_t dimension) {
  return spec.extents[dimension::channel] == 1 ? spec.strides[dimension] : spec.strides[dimension::channel];
}

// Whether taps along `dimension` follow the channels without a gap.
bool follows_channels(const TensorSpec& spec, size_t dimension) {
  return channel_stride(spec, dimension) == 1 && spec.strides[dimension] == spec.extents[dimension::channel];
}

void merge_into_channels(TensorSpec& spec, size_t dimension, int64_t taps, int64_t left) {
  spec.strides[dimension::channel] = channel_stride(spec, dimension);
  spec.extents[dimension::channel] *= taps;
  spec.strides[dimension] *= taps;
  spec.extents[dimension] = left;
}

void move_channels(TensorSpec& spec) {
  spec.extents[dimension::plane] = spec.extents[dimension::channel];
  spec.strides[dimension::plane] = spec.strides[dimension::channel];
  spec.extents[dimension::channel] = 1;
}

// Each window is one place, whose taps are the phases.
std::optional<Phases> phases_of_windows(const WindowAxis& axis) {
  if (axis.window == 1 || !tiles_x(axis)) return std::nullopt;
  return Phases{axis.window, axis.outputs, 1};
}

// The same, or some places of a stride each. Those of the padding are whole, and so is the last that a window reads.
std::optional<Phases> phases_of_taps(const WindowAxis& axis) {
  if (const auto phases = phases_of_windows(axis)) return phases;
  const int64_t stride = axis.stride, places = axis.extent / stride;
  const bool are_whole = stride > 1 && axis.dilation == 1 && axis.window % stride == 0 && axis.pad_begin >= 0 &&
                         axis.pad_begin % stride == 0;
  const int64_t end = (axis.outputs - 1) * stride + axis.window - axis.pad_begin;
  if (!are_whole || places == 0 || (axis.extent % stride != 0 && end > places * stride)) return std::nullopt;
  return Phases{stride, places, axis.window / stride, axis.pad_begin / stride};
}

bool MergedOperands::merge(FindPhases find, WindowAxis& axis, size_t dimension) {
  const std::optional<Phases> phases = find(axis);
  if (!phases || !follows_channels(x, dimension) || !follows_channels(w, dimension)) return false;
  merge_into_channels(x, dimension, phases->count, phases->in_x);
  merge_into_channels(w, dimension, phases->count, phases->in_w);
  const int64_t outputs = axis.outputs;
  axis = {};
  axis.extent = phases->in_x;
  axis.window = phases->in_w;
  axis.outputs = outputs;
  axis.pad_begin = phases->padding;
  axis.pad_end = outputs - 1 + axis.window - axis.extent - axis.pad_begin;
  return true;
}

bool MergedOperands::merge(FindPhases find) {
  const bool of_columns = merge(find, axes.columns, dimension::column);
  const bool of_rows = merge(find, axes.rows, dimension::row);
  return merge(find, axes.planes, dimension::plane) || of_columns || of_rows;
}

bool MergedOperands::merge_rows_of_pixels(FindPhases find, int64_t run) {
  const bool free_axis = axes.planes == WindowAxis{};
  if (!free_axis || x.extents[dimension::channel] == 1 || run < shortest_run) return false;
  MergedOperands moved = *this;
  move_channels(moved.x);
  move_channels(moved.w);
  moved.axes.planes.extent = moved.axes.planes.window = moved.x.extents[dimension::plane];
  if (!moved.merge(find)) return false;
  *this = moved;
  return true;
}

// ---- phases as channels: the gradient by x of filters with a large stride, which transposed convolutions are
//
// Positions i, i + stride, i + 2 * stride of dx meet the same taps: i is their phase. Where phases stand side by side
// in dx as their taps do in w, they become channels of one convolution, in place of a class with code for each.

constexpr int64_t least_phases = 4;  // fewer are few classes

// Where taps, dx and the padding ahead of it are whole strides.
std::optional<Phases> phases_of_stride(const WindowAxis& axis) {
  const int64_t stride = axis.stride;
  const bool are_whole = axis.dilation == 1 && axis.window % stride == 0 && axis.extent % stride == 0 &&
                         axis.pad_begin >= 0 && axis.pad_begin % stride == 0;
  if (stride < least_phases || !are_whole) return std::nullopt;
  return Phases{stride, axis.extent / stride, axis.window / stride, axis.pad_begin / stride};
}

void merge_phases(MergedOperands& operands) {
  if (operands.merge(phases_of_stride)) return;
  WindowAxis& planes = operands.axes.planes;
  const bool are_moved = operands.merge_rows_of_pixels(phases_of_stride, operands.axes.columns.stride);
  if (are_moved) planes.stride = planes.window;  // a class for each channel
}

// Whether taps may become channels. A prologue, which counts the channels of x, and filters that are met backwards
// forbid it.
bool may_merge_taps(const ConvPass& pass, const Request& request) {
  return pass.groups == 1 && pass.grid.empty() && !pass.mirrored && !has_prologue(request);
}

Contractions forward_parts(const ConvForward& forward) {
  Contractions parts{{"x", "w", "y"}, {convolution(forward)}};
  ConvolutionAddresses& conv = parts.list.front().addresses;
  if (!forward.grid.empty()) {
    conv.w.extents[0] = conv.k();
    divide_pixels(conv, conv.w_region_stride);
  }
  return parts;
}

Contraction data_part(const ConvBackwardData& data, const MergedOperands& operands,
                      const std::array<TapClass, 3>& classes) {
  const SpatialAxes& forward = operands.axes;
  Contraction contraction = without_operands(data);
  contraction.bias = data.bias;
  contraction.epilogue = data.epilogue;
  ConvolutionAddresses& conv = contraction.addresses;
  conv.x = with_three_axes(data.dy);
  conv.w = operands.w;
  conv.y = operands.x;
  if (data.residual) conv.residual = with_three_axes(*data.residual);
  conv.w_group_stride = data.k_per_group() * conv.w.strides[0];
  conv.w.extents = {conv.y.extents[dimension::channel], data.k_per_group(), 0, 0, 0};
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
  begin_at(conv.w_first, conv.w);
  if (conv.groups > 1) begin_at(conv.w_group_stride, conv.w);
  begin_at(conv.y_first, conv.y);
  if (conv.residual) begin_at(conv.residual_first, *conv.residual);
  conv.wide_index = needs_64_bits({&data.dy, &data.w, &data.dx}, forward, conv) ||
                    (data.residual && needs_wide_index({&*data.residual}));
  conv.read_layouts();
  if (!data.grid.empty()) {
    divide_inputs(conv, SpatialRegions::of(data.regions(), data.axes()), region_stride(data.w, data.axes(), data.k()));
  }
  return contraction;
}

Contractions data_parts(const ConvBackwardData& data, bool may_merge) {
  Contractions parts{{"dy", "w", "dx"}};
  MergedOperands operands{axes_of(data), with_three_axes(data.dx),
                          with_three_axes(without_regions(data.w, data.axes()))};
  if (may_merge) merge_phases(operands);
  const SpatialAxes& forward = operands.axes;
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
      for (const TapClass& column : columns) parts.list.push_back(data_part(data, operands, {plane, row, column}));
    }
  }
  size_t segment_firsts = 0;
  for (const Contraction& part : parts.list) {
    for (const std::vector<int64_t>& firsts : part.addresses.segments.firsts) segment_firsts += firsts.size();
  }
  if (segment_firsts > most_segment_firsts) parts.refusal = too_many_segments;
  // Classes with the most to do come first (lib/class_blocks.cuh).
  std::stable_sort(parts.list.begin(), parts.list.end(),
                   [](const Contraction& a, const Contraction& b) { return a.addresses.taps() > b.addresses.taps(); });
  // The lanes of all classes run in one direction.
  for (Contraction& part : parts.list) part.addresses.y_along_k = parts.list.front().addresses.y_along_k;
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

// Whether x or dy have more channels than dw: packed ones do.
bool has_filled_up_operands(const ConvBackwardFilter& filter) {
  return filter.groups == 1 && filter.grid.empty() &&
         (filter.c() != filter.c_per_group() || filter.k() != filter.dw.extents[0]);
}

Contractions filter_parts(const ConvBackwardFilter& filter, bool may_merge) {
  Contractions parts{{"x", "dy", "dw"}};
  constexpr int64_t most_products = (int64_t{1} << 31) - 1;  // of an element of dw
  if (filter.dynamic_batch) parts.refusal = "the batch is what is summed over: it must be fixed";
  if (filter.n() == 0) parts.refusal = "the batch is empty: there is nothing to multiply";
  if (filter.n() > 0 && filter.dy.elements() / filter.k() > most_products) {
    parts.refusal = "an element of dw has 2^31 products or more";
  }
  if (parts.refusal) return parts;

  Contraction contraction = without_operands(filter);
  ConvolutionAddresses& conv = contraction.addresses;
  MergedOperands merged{axes_of(filter), with_three_axes(filter.x),
                        with_three_axes(without_regions(filter.dw, filter.axes()))};
  // Windows that overlap stay as they are: merged, their gradients are estimated slower on a T4.
  const bool is_filled_up = has_filled_up_operands(filter);
  if (may_merge && !is_filled_up) merged.merge(phases_of_windows);
  const SpatialAxes& forward = merged.axes;
  conv.x = merged.x;
  conv.w = with_three_axes(filter.dy);
  conv.y = merged.w;
  for (TensorSpec* spec : {&conv.x, &conv.w, &conv.y}) swap_first_two(*spec);
  conv.x.extents[0] /= filter.groups;
  if (is_filled_up) {
    conv.k_filled_up = filter.k() - conv.y.extents[1];
  } else {
    conv.y.extents[1] = filter.k();
  }
  conv.mirrored = false;
  static_cast<SpatialAxes&>(conv) = {filter_axis(forward.planes, filter.mirrored),
                                     filter_axis(forward.rows, filter.mirrored),
                                     filter_axis(forward.columns, filter.mirrored)};
  conv.x_group_stride = filter.c_per_group() * filter.x.strides[1];
  conv.w_group_stride = filter.k_per_group() * filter.dy.strides[1];
  if (conv.groups > 1) begin_at(conv.x_group_stride, conv.x);
  conv.wide_index = needs_64_bits({&filter.x, &filter.dy, &filter.dw}, forward, conv);
  if (!filter.grid.empty()) {
    divide_taps(conv, SpatialRegions::of(filter.regions(), filter.axes()),
                region_stride(filter.dw, filter.axes(), filter.k()));
  }
  conv.read_layouts();
  conv.images_inner = !conv.channels_inner && dimension_0_is_inner(conv.x, dimension::plane);
  conv.images_are_channels = true;
  parts.list.push_back(std::move(contraction));
  return parts;
}

// The contractions of a request with packed operands.
Contractions of_packed(const Request& request, const std::vector<PackedRole>& roles, ContractionMaker make) {
  const auto refused = [](const char* why) {
    Contractions parts;
    parts.refusal = why;
    return parts;
  };
  for (const PackedRole& role : roles) {
    const TensorSpec& spec = *request.find(role.name);
    if (role.groups > 1 && spec.extents[static_cast<size_t>(role.inner)] == role.groups) {
      return refused("it is depthwise: a packed piece would have one channel");
    }
  }
  PackedRequest packed = with_packed_operands(request, roles);
  if (packed.is_too_large) return refused("the packed operands need more than 2 GiB");
  if (packed.operands.empty()) return refused("operands are copied as they are");
  Contractions parts = make(packed.request);
  parts.packed = std::move(packed.operands);
  return parts;
}

}  // namespace

Contraction without_operands(const ConvPass& pass) {
  Contraction contraction;
  contraction.arithmetic = pass.arithmetic;
  contraction.blend = pass.blend;
  contraction.addresses.groups = pass.groups;
  contraction.addresses.mirrored = pass.mirrored;
  contraction.addresses.dynamic_batch = pass.dynamic_batch;
  return contraction;
}

Contraction convolution(const ConvForward& forward) {
  Contraction contraction = without_operands(forward);
  contraction.bias = forward.bias;
  contraction.epilogue = forward.epilogue;
  ConvolutionAddresses& conv = contraction.addresses;
  static_cast<SpatialAxes&>(conv) = axes_of(forward);
  conv.x = with_three_axes(forward.x);
  conv.w = with_three_axes(without_regions(forward.w, forward.axes()));
  conv.y = with_three_axes(forward.y);
  if (forward.residual) conv.residual = with_three_axes(*forward.residual);
  conv.region_axes = SpatialRegions::of(forward.regions(), forward.axes());
  if (!forward.grid.empty()) conv.w_region_stride = region_stride(forward.w, forward.axes(), forward.k());
  conv.x_group_stride = forward.c_per_group() * conv.x.strides[dimension::channel];
  conv.w_group_stride = forward.k_per_group() * conv.w.strides[0];
  conv.wide_index = needs_64_bits({&forward.x, &forward.w, &forward.y}, conv, conv) ||
                    (forward.residual && needs_wide_index({&*forward.residual}));
  conv.read_layouts();
  return contraction;
}

Contractions forward_contractions(const Request& request) {
  const ConvForward forward = ConvForward::of(request);
  return finished(forward_parts(forward), request);
}

Contractions forward_products(const Request& request) {
  const ConvForward forward = ConvForward::of(request);
  Contractions parts = forward_parts(forward);
  ConvolutionAddresses& conv = parts.list.front().addresses;
  MergedOperands merged{conv, conv.x, conv.w};
  const auto merge = [&] {
    if (merged.merge(phases_of_taps)) return true;
    const std::optional<Phases> of_columns = phases_of_taps(merged.axes.columns);
    return of_columns && merged.merge_rows_of_pixels(phases_of_taps, of_columns->count);
  };
  if (may_merge_taps(forward, request) && merge()) {
    static_cast<SpatialAxes&>(conv) = merged.axes;
    conv.x = merged.x;
    conv.w = merged.w;
    conv.read_layouts();
  }
  return finished(std::move(parts), request);
}

Contractions data_contractions(const Request& request) {
  return finished(data_parts(ConvBackwardData::of(request), false), request);
}

Contractions data_products(const Request& request) {
  const ConvBackwardData data = ConvBackwardData::of(request);
  // A bias of a channel is not known to its phases, nor is anything else that is added.
  const bool may_merge = may_merge_taps(data, request) && !data.bias && !data.residual && !request.user_code;
  return finished(data_parts(data, may_merge), request);
}

Contractions filter_contractions(const Request& request) {
  const ConvBackwardFilter filter = ConvBackwardFilter::of(request);
  return finished(filter_parts(filter, may_merge_taps(filter, request)), request);
}

Contractions packed_forward(const Request& request) {
  const int64_t groups = ConvForward::of(request).groups;
  return of_packed(request, {{"x", 1, groups, true}, {"w", 1, 1, true, true}}, forward_contractions);
}

Contractions packed_data(const Request& request) {
  const int64_t groups = ConvBackwardData::of(request).groups;
  return of_packed(request, {{"dy", 1, groups, true}, {"w", 0, groups, true, true}}, data_contractions);
}

Contractions packed_filter(const Request& request) {
  const ConvBackwardFilter filter = ConvBackwardFilter::of(request);
  // Channels are rows and columns of the product. Those of several groups follow each other in dw, where what is filled
  // up has no room.
  const bool fill_up = filter.groups == 1 && filter.grid.empty();
  return of_packed(request, {{"x", 1, filter.groups, fill_up}, {"dy", 1, filter.groups, fill_up}}, filter_contractions);
}

}  // namespace kiln::descriptor
