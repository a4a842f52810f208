// The spatial axes of windowed operations, as kernels with three of them see any request.
#pragma once

#include "kiln/generator/specialise.h"
#include "kiln/generator/window_axis.h"

namespace kiln::descriptor {

/// Axes that a request does not have keep the default: one element, one output.
struct SpatialAxes {
  WindowAxis planes, rows, columns;  ///< D T Z, H R P and W S Q

  int64_t pixels_per_image() const { return planes.outputs * rows.outputs * columns.outputs; }
  int64_t taps() const { return planes.window * rows.window * columns.window; }
};

/// Parts of windows that an open kernel fixes: it divides by them, or its registers or shared memory depend on them.
enum class FixedAxes {
  nothing,
  dilations,
  steps,    ///< Strides and dilations.
  windows,  ///< These, and the windows' extents.
  filters,  ///< These, and the number of channels that a filter has.
};

/// The axes of a ConvForward or PoolForward.
template <class View>
SpatialAxes axes_of(const View& view) {
  SpatialAxes result;
  const int axes = view.axes();
  result.columns = view.axis(axes - 1);
  if (axes > 1) result.rows = view.axis(axes - 2);
  if (axes > 2) result.planes = view.axis(0);
  return result;
}

/// D, T, Z, PAD_FRONT, PAD_BACK, STRIDE_D, DILATION_D; H, R, P, PAD_TOP, PAD_BOTTOM and so on; W, S, Q, PAD_LEFT,
/// PAD_RIGHT and so on. All are extents of the prelude but what `fixed` names, and but axes of one element.
void add_axes(Prelude& prelude, const SpatialAxes& axes, FixedAxes fixed = FixedAxes::nothing);

/// Whether coordinates in x and its padding fit an int with room to spare.
bool coordinates_fit_int(const SpatialAxes& axes);

/// Taps of a window that fall inside x, for the average output.
double mean_taps_inside(const SpatialAxes& axes);

}  // namespace kiln::descriptor
