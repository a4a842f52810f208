// Parts shared by kernels that are written for a gradient itself (not as a contraction: conv/conv_contractions.h).
#pragma once

#include <initializer_list>

#include "contraction/block_estimate.h"
#include "contraction/contraction.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"

namespace kiln::descriptor {

/// Regions of a gradient that have filters of their own, and the places of those filters.
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

/// Types, extents, strides and the parameters of the convolution whose gradient it is, under the names that these have
/// in that convolution.
Prelude gradient_prelude(const DataGradient& gradient);
Prelude gradient_prelude(const FilterGradient& gradient, FixedAxes fixed = FixedAxes::nothing);

/// Work of a thread of a trusted kernel, which has one element of the result.
struct SimpleWork {
  double products = 0;
  double tried = 0;          ///< taps and channels: some meet no output
  double rows = 0;           ///< of products whose loads wait for those before them
  Access first{}, second{};  ///< its warp's loads for a product
};

/// `operands`: the last is the result.
Estimate simple_gradient_estimate(int threads, const SimpleWork& thread,
                                  std::initializer_list<const TensorSpec*> operands, const Target& target,
                                  const DeviceFigures& device);

/// Whether their grid has no more blocks than a launch may.
bool simple_gradient_fits(int threads, const TensorSpec& result);

}  // namespace kiln::descriptor
