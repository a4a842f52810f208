// Parts shared by the descriptors of max unpooling's gradient.
#pragma once

#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"
#include "descriptor/window.h"
#include "kiln/generator/operations/unpool_backward.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: its operands have three spatial dimensions (with_three_axes()), whatever the
/// request has.
struct UnpoolProblem : UnpoolBackward, SpatialAxes {
  static UnpoolProblem of(const Request& request);

  /// Neighbouring threads take neighbouring channels of dx, not pixels.
  bool channels_inner = false;
  /// Outputs of one image.
  int64_t outputs_per_image() const { return c() * pixels_per_image(); }
};

/// TDY, TDX, Index, N, DYNAMIC_N, C, the axes (add_axes()), DY_STRIDE_N and the like (also of indices and dx), ALPHA
/// and BETA.
Prelude unpool_prelude(const UnpoolProblem& unpool);

/// Work of threads that take `vector` outputs each, in blocks of `threads`. `along_channels`: neighbours take
/// neighbouring channels, else neighbouring columns.
StreamingWork unpool_work(const UnpoolProblem& unpool, int vector, int threads, bool along_channels);

}  // namespace kiln::descriptor
