// What the kernels that are written for a gradient itself (not as a contraction: conv/passes.h) share.
#pragma once

#include <initializer_list>

#include "contraction/contraction.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"

namespace kiln::descriptor {

/// Of a gradient: the regions that have filters of their own, and where those stand.
struct RegionsInMemory {
  SpatialRegions region_axes;
  int64_t region_stride = 0;  ///< elements of w, or dw, from the filters of one region to those of the next
  bool wide_index = false;    ///< an offset into an operand, or a coordinate in the padded input, needs 64 bits
};

/// Requests as descriptors see them: operands have three spatial dimensions (with_three_axes()), whatever the request
/// has.
struct DataGradient : ConvBackwardData, SpatialAxes, RegionsInMemory {
  static DataGradient of(const Request& request);
};
struct FilterGradient : ConvBackwardFilter, SpatialAxes, RegionsInMemory {
  static FilterGradient of(const Request& request);
};

/// Types, extents, strides and the parameters of the convolution whose gradient it is, under the names that
/// lib/conv_gradients.cuh uses.
Prelude gradient_prelude(const DataGradient& gradient);
Prelude gradient_prelude(const FilterGradient& gradient);

/// Of the trusted kernels, which give a thread to each element of the last of `operands`, the result, and `products` to
/// a thread.
Estimate simple_gradient_estimate(int threads, double products, std::initializer_list<const TensorSpec*> operands,
                                  const Target& target, const DeviceFigures& device);

/// Whether their grid has no more blocks than a launch may.
bool simple_gradient_fits(int threads, const TensorSpec& result);

}  // namespace kiln::descriptor
