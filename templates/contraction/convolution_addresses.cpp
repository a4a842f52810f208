#include "contraction/convolution_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {
namespace {

bool is_plain(const WindowAxis& axis) {
  return axis.window == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.extent == axis.outputs;
}

std::array<RegionAxis, 3> in_order(const SpatialRegions& regions) {
  return {regions.planes, regions.rows, regions.columns};
}

constexpr std::initializer_list<int> space = {dimension::column, dimension::row, dimension::plane};

// Says whether elements are evenly spaced, NAME_ARE_ONE_RUN, and how far apart, NAME_STRIDE.
void add_run(Prelude& prelude, std::string_view elements, std::string_view one, const std::optional<int64_t>& stride) {
  prelude.flag(fmt::format("{}_ARE_ONE_RUN", elements), stride.has_value());
  prelude.extent(fmt::format("{}_STRIDE", one), stride.value_or(0));
}

// The stride of the elements of one output channel's filter, in their order.
std::optional<int64_t> filter_stride(const ConvolutionAddresses& conv) {
  if (conv.channels_inner)
    return run_stride(conv.w, {dimension::channel, dimension::column, dimension::row, dimension::plane});
  return run_stride(conv.w, {dimension::column, dimension::row, dimension::plane, dimension::channel});
}

// Whether every tap of every window along an axis is inside x.
bool windows_are_inside(const WindowAxis& axis) {
  const int64_t first = axis.position(0, 0), last = axis.position(axis.outputs - 1, 0);
  return std::min(first, last) >= 0 && std::max(first, last) + axis.reach() <= axis.extent;
}

// Bits by which taps along an axis are told to be outside: one where none is, for a pixel that does not exist.
int64_t tap_bits(const WindowAxis& axis) {
  return windows_are_inside(axis) ? 1 : axis.window;
}

// Share of the taps along an axis that are in other regions than the tap before.
double share_apart(const WindowAxis& axis, const RegionAxis& regions) {
  const double met =
      1 + static_cast<double>((axis.reach() - 1) * regions.regions) / static_cast<double>(regions.outputs);
  return std::min(1.0, met / static_cast<double>(axis.window));
}

}  // namespace

bool dimension_0_is_inner(const TensorSpec& spec, size_t first_other) {
  if (spec.extents[0] <= 1) return false;
  bool others = false;
  for (size_t i = first_other; i < spec.extents.size(); ++i) {
    if (spec.extents[i] <= 1) continue;
    if (spec.strides[i] <= spec.strides[0]) return false;
    others = true;
  }
  return others;
}

void ConvolutionAddresses::read_layouts() {
  const Inner x_inner = inner_of(x), y_inner = inner_of(y);
  channels_inner = x_inner == Inner::channels || (x_inner == Inner::either && c() > 1);
  // Images of one pixel may stand side by side: in the gradient by filters of 1x1 they are channels.
  const bool images_are_nearer = !dynamic_batch && y.extents[0] > 1 && y.strides[0] < y.strides[dimension::channel];
  y_along_k = y_inner == Inner::channels || (y_inner == Inner::either && pixels_per_image() == 1 && !images_are_nearer);
  pointwise = is_plain(planes) && is_plain(rows) && is_plain(columns);
  filters_inner = dimension_0_is_inner(w, dimension::channel);
}

void divide_pixels(ConvolutionAddresses& conv, int64_t region_stride) {
  conv.divided = Divided::pixels;
  conv.w_region_stride = region_stride;
  begin_at(region_stride, conv.w);
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

void divide_taps(ConvolutionAddresses& conv, const SpatialRegions& regions, int64_t region_stride) {
  conv.region_axes = regions;
  conv.divided = Divided::taps;
  WindowAxis* const axes[] = {&conv.planes, &conv.rows, &conv.columns};
  for (size_t i = 0; i < 3; ++i) {
    axes[i]->window = in_order(regions)[i].longest();
    conv.w.extents[dimension::plane + i] = axes[i]->window;
  }
  conv.w.alignment = size_of(conv.w.dtype);  // regions begin anywhere
  conv.y_region_stride = region_stride;
  begin_at(region_stride, conv.y);
}

void divide_inputs(ConvolutionAddresses& conv, const SpatialRegions& regions, int64_t region_stride) {
  conv.region_axes = regions;
  conv.divided = Divided::inputs;
  conv.segments = Segments::of(conv, regions);
  conv.w_region_stride = region_stride;
  begin_at(region_stride, conv.w);
  conv.pointwise = false;  // whose pixels are those of x in one row
}

Prelude addresses_prelude(const ConvolutionAddresses& conv, FixedAxes fixed) {
  Prelude prelude;
  prelude.type("TX", conv.x.dtype).type("TW", conv.w.dtype).type("TY", conv.y.dtype);
  prelude.index_type("Index", conv.wide_index);
  add_batch(prelude, conv.n(), conv.dynamic_batch);
  prelude.extent("C", conv.c()).extent("K", conv.k()).extent("GROUPS", conv.groups, conv.groups != 1);
  if (conv.pointwise) fixed = std::max(fixed, FixedAxes::windows);
  const bool filters_vary = fixed < FixedAxes::filters;
  prelude.extent("C_PER_GROUP", conv.c_per_group(), filters_vary).extent("K_PER_GROUP", conv.k_per_group());
  add_axes(prelude, conv, fixed);
  prelude.extent("TAPS", conv.taps(), fixed < FixedAxes::windows);
  prelude.extent("FILTER_ELEMENTS", conv.c_per_group() * conv.taps(), filters_vary);
  prelude.extent("PIXELS_PER_IMAGE", conv.pixels_per_image()).flag("POINTWISE", conv.pointwise);
  // Where all outputs have the same filters their number plays no part.
  const bool divides = conv.region_axes.count() > 1 || conv.divided != Divided::nothing;
  add_regions(prelude, divides ? conv.region_axes : SpatialRegions());
  prelude.flag("REGIONS_OF_PIXELS", conv.divided == Divided::pixels);
  prelude.flag("REGIONS_OF_TAPS", conv.divided == Divided::taps);
  prelude.extent("W_STRIDE_REGION", conv.w_region_stride).extent("Y_STRIDE_REGION", conv.y_region_stride);
  add_strides(prelude, "X", "NCDHW", conv.x);
  add_strides(prelude, "W", "KCTRS", conv.w);
  prelude.extent("X_STRIDE_G", conv.x_group_stride).extent("W_STRIDE_G", conv.w_group_stride);
  add_run(prelude, "X_PIXELS", "X_PIXEL",
          run_stride(conv.x, {dimension::column, dimension::row, dimension::plane, dimension::batch}));
  add_run(prelude, "ELEMENTS_OF_FILTER", "ELEMENT_OF_FILTER", filter_stride(conv));
  add_run(prelude, "TAPS_OF_FILTER", "TAP_OF_FILTER", run_stride(conv.w, space));
  prelude.flag("FILTERS_ARE_ONE_RUN",
               conv.groups == 1 || conv.w_group_stride == conv.k_per_group() * conv.w.strides[dimension::batch]);
  const TensorSpec& residual = conv.residual ? *conv.residual : conv.y;
  add_strides(prelude, "Y", "NKZPQ", conv.y);
  add_strides(prelude, "RESIDUAL", "NKZPQ", residual);
  add_run(prelude, "Y_PLACES", "Y_PLACE", run_stride(conv.y, space));
  add_run(prelude, "RESIDUAL_PLACES", "RESIDUAL_PLACE", run_stride(residual, space));
  prelude.extent("W_FIRST", conv.w_first).extent("Y_FIRST", conv.y_first);
  prelude.extent("RESIDUAL_FIRST", conv.residual_first).flag("NO_TAPS", conv.no_taps);
  prelude.flag("CHANNELS_INNER", conv.channels_inner).flag("Y_ALONG_K", conv.y_along_k);
  prelude.flag("IMAGES_INNER", conv.images_inner).flag("W_ALONG_K", conv.filters_inner);
  prelude.flag("IMAGES_ARE_CHANNELS", conv.images_are_channels);
  prelude.flag("MIRRORED", conv.mirrored);
  return prelude;
}

void add_filter_taps(Prelude& prelude, const ConvolutionAddresses& conv) {
  std::vector<int64_t> w;
  for (int64_t t = 0; t < conv.planes.window; ++t) {
    for (int64_t r = 0; r < conv.rows.window; ++r) {
      for (int64_t s = 0; s < conv.columns.window; ++s) {
        w.push_back(t * conv.w.strides[dimension::plane] + r * conv.w.strides[dimension::row] +
                    s * conv.w.strides[dimension::column]);
      }
    }
  }
  prelude.extent_table("TAP_W", w, most_open_taps);
}

void add_tap_tables(Prelude& prelude, const ConvolutionAddresses& conv) {
  const WindowAxis* const axes[] = {&conv.planes, &conv.rows, &conv.columns};
  std::vector<int64_t> x, windows;
  for (int64_t tap = 0; tap < conv.taps(); ++tap) {
    int64_t in_x = 0, window = 0, rest = tap, first_bit = 0;
    for (int i = 2; i >= 0; --i) {
      const int64_t at = rest % axes[i]->window;
      rest /= axes[i]->window;
      const int64_t step = conv.mirrored ? axes[i]->window - 1 - at : at;
      in_x += step * axes[i]->dilation * conv.x.strides[dimension::plane + static_cast<size_t>(i)];
      const int64_t bits = tap_bits(*axes[i]);
      window |= int64_t{1} << (first_bit + std::min(at, bits - 1));
      first_bit += bits;
    }
    x.push_back(in_x);
    windows.push_back(window);
  }
  const bool vary = !conv.pointwise;  // in open kernels
  prelude.extent("PLANE_BITS", tap_bits(conv.planes), vary).extent("ROW_BITS", tap_bits(conv.rows), vary);
  prelude.extent("COLUMN_BITS", tap_bits(conv.columns), vary);
  prelude.extent_table("TAP_X", x, most_open_taps).extent_table("TAP_WINDOW", windows, most_open_taps);
}

int64_t tap_bits(const ConvolutionAddresses& conv) {
  return tap_bits(conv.planes) + tap_bits(conv.rows) + tap_bits(conv.columns);
}

int output_vector_width(const ConvolutionAddresses& conv, int64_t of) {
  const auto width = [&](const TensorSpec& spec) {
    if (conv.y_along_k) return widest_vector(spec, {dimension::channel}, of);
    if (conv.images_inner) return 1;  // neighbouring pixels are of different images
    return widest_vector(spec, {dimension::column, dimension::row, dimension::plane}, of);
  };
  return conv.residual ? std::min(width(conv.y), width(*conv.residual)) : width(conv.y);
}

double filter_spread(const ConvolutionAddresses& conv) {
  if (conv.divided != Divided::inputs || conv.filters_inner) return 1;
  int64_t pitch = 32 / size_of(conv.w.dtype);  // elements from one that is read to the next, of a sector at most
  for (const size_t i : {size_t{0}, size_t{dimension::channel}}) {
    if (conv.w.extents[i] > 1) pitch = std::min(pitch, conv.w.strides[i]);
  }
  const double share = share_apart(conv.planes, conv.region_axes.planes) *
                       share_apart(conv.rows, conv.region_axes.rows) *
                       share_apart(conv.columns, conv.region_axes.columns);
  return std::max(1.0, static_cast<double>(pitch) * share);
}

double inside_share(const SpatialAxes& axes) {
  return mean_taps_inside(axes) / static_cast<double>(axes.taps());
}

}  // namespace kiln::descriptor
