#include "descriptor/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace kiln::descriptor {
namespace {

struct Names {
  const char *extent, *window, *outputs, *pad_begin, *pad_end;
};

bool is_of_one_element(const WindowAxis& axis) {
  return axis.extent == 1 && axis.window == 1 && axis.outputs == 1 && axis.pad_begin == 0 && axis.pad_end == 0 &&
         axis.stride == 1 && axis.dilation == 1;
}

// Most requests have fewer than three axes: an open kernel that knows the others does less.
void add_axis(Prelude& prelude, const WindowAxis& axis, const Names& names, FixedAxes fixed) {
  const bool is_one = is_of_one_element(axis);
  const auto add = [&](const std::string& name, int64_t value, bool is_fixed = false) {
    prelude.extent(name, value, !is_fixed && !is_one);
  };
  add(names.extent, axis.extent);
  add(names.window, axis.window, fixed >= FixedAxes::windows);
  add(names.outputs, axis.outputs);
  add(names.pad_begin, axis.pad_begin);
  add(names.pad_end, axis.pad_end);
  add(fmt::format("STRIDE_{}", names.extent), axis.stride, fixed >= FixedAxes::steps);
  add(fmt::format("DILATION_{}", names.extent), axis.dilation, fixed >= FixedAxes::dilations);
}

bool fits_int(const WindowAxis& axis) {
  constexpr int64_t limit = int64_t{1} << 30;
  return axis.pad_begin < limit && axis.extent + axis.pad_end < limit && axis.stride < limit / axis.outputs &&
         axis.dilation < limit / axis.window && axis.outputs * axis.stride + axis.window * axis.dilation < limit;
}

double mean_taps_inside(const WindowAxis& axis) {
  // Outputs are sampled: images may be large.
  constexpr int64_t samples = 64;
  const int64_t step = std::max<int64_t>(1, axis.outputs / samples);
  double taps = 0, windows = 0;
  for (int64_t output = 0; output < axis.outputs; output += step) {
    const int64_t start = axis.position(output, 0), last_element = axis.extent - 1 - start;
    const int64_t first = start >= 0 ? 0 : (-start + axis.dilation - 1) / axis.dilation;
    const int64_t last = last_element < 0 ? -1 : std::min(axis.window - 1, last_element / axis.dilation);
    taps += static_cast<double>(std::max<int64_t>(0, last - first + 1));
    windows += 1;
  }
  return windows > 0 ? taps / windows : 0;
}

}  // namespace

void add_axes(Prelude& prelude, const SpatialAxes& axes, FixedAxes fixed) {
  add_axis(prelude, axes.planes, {"D", "T", "Z", "PAD_FRONT", "PAD_BACK"}, fixed);
  add_axis(prelude, axes.rows, {"H", "R", "P", "PAD_TOP", "PAD_BOTTOM"}, fixed);
  add_axis(prelude, axes.columns, {"W", "S", "Q", "PAD_LEFT", "PAD_RIGHT"}, fixed);
}

bool coordinates_fit_int(const SpatialAxes& axes) {
  return fits_int(axes.planes) && fits_int(axes.rows) && fits_int(axes.columns);
}

double mean_taps_inside(const SpatialAxes& axes) {
  return mean_taps_inside(axes.planes) * mean_taps_inside(axes.rows) * mean_taps_inside(axes.columns);
}

}  // namespace kiln::descriptor
