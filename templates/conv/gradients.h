// What the kernels that are written for a gradient itself (not as a forward convolution: conv/conv_parts.h) share.
#pragma once

#include "conv/conv_problem.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"

namespace kiln::descriptor {

/// Requests as descriptors see them: operands have three spatial dimensions (with_three_axes()), whatever the request
/// has.
struct DataGradient : ConvBackwardData, SpatialAxes {
  static DataGradient of(const Request& request);
};
struct FilterGradient : ConvBackwardFilter, SpatialAxes {
  static FilterGradient of(const Request& request);
};

/// Types, extents, strides and the parameters of the convolution whose gradient it is, under the names that
/// lib/conv_gradients.cuh uses.
Prelude gradient_prelude(const DataGradient& gradient);
Prelude gradient_prelude(const FilterGradient& gradient);

}  // namespace kiln::descriptor
