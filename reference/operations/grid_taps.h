// The elements of x that grid_sample makes an output of, along one axis: the same for its gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/generator/operations/grid_sample.h"

namespace kiln::reference {

/// An element of x along an axis, and its part in an output.
struct GridTap {
  int64_t position = 0;
  double weight = 1, error = 0;       ///< Error in units of 2^-24, as kernels compute it in f32.
  double slope = 0, slope_error = 0;  ///< Derivative of the weight by the coordinate of the grid; likewise.
};

/// The position in x that a coordinate names, in f32 as kernels compute it, before padding.
float grid_position(const GridSampling& sampling, float coordinate, int64_t extent);

/// Taps along an axis of `extent` elements, those in x alone.
std::vector<GridTap> grid_taps(const GridSampling& sampling, float coordinate, int64_t extent);

}  // namespace kiln::reference
