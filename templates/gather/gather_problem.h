// gather as its descriptors see it: an element-wise operation whose first input stands where indices say.
#pragma once

#include <cstdint>
#include <string>

#include "descriptor/streaming_estimate.h"
#include "pointwise/pointwise_problem.h"

namespace kiln::descriptor {

struct GatherProblem {
  static GatherProblem of(const Request& request);

  PointwiseProblem elements;                 ///< Its inputs are x, which has no stride along the axis, and indices.
  int64_t axis_extent = 0, axis_stride = 0;  ///< Extent and stride of x along the axis.
};

/// The constants of lib/gather.cuh, with the dimensions of `grid`. `open`: for an open kernel.
Prelude gather_prelude(const GatherProblem& problem, const PointwiseGrid& grid, bool open);

/// Bytes that move if a thread takes `vector` neighbours along the innermost dimension of `grid`, `items` times, in
/// blocks of `threads`.
StreamingWork gather_work(const GatherProblem& problem, const PointwiseGrid& grid, int vector, int items, int threads);

}  // namespace kiln::descriptor
