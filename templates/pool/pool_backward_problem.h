// Parts shared by the descriptors of pooling's gradient.
#pragma once

#include "descriptor/strided.h"
#include "descriptor/window.h"
#include "kiln/generator/operations/pool_backward.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: dy, x and dx have three spatial dimensions (with_three_axes()), whatever the
/// request has. Where there is no x, dx stands in its place, and dy in that of indices.
struct PoolBackwardProblem : PoolBackward, SpatialAxes {
  static PoolBackwardProblem of(const Request& request);

  /// Neighbouring threads take neighbouring channels of dx, not pixels.
  bool channels_inner = false;
  bool has_indices = false;
  /// Whether the maxima of x are to be found.
  bool reads_x() const { return mode == PoolMode::max && !has_indices; }
  int64_t taps() const { return SpatialAxes::taps(); }
  /// Windows of one image.
  int64_t windows_per_image() const { return c() * pixels_per_image(); }
  /// Elements of one image of dx.
  int64_t elements_per_image() const { return c() * planes.extent * rows.extent * columns.extent; }
};

/// Rule "C, alignment and VECTOR agree" of kernels whose threads take `vector` channels, and whether an open kernel
/// does so: one, four, or an access of dx.
bool channels_fit(const PoolBackwardProblem& pool, int vector);
bool is_open_vector(const PoolBackwardProblem& pool, int vector);

/// Whether offsets and coordinates need more than 32 bits.
bool needs_wide_index(const PoolBackwardProblem& pool);

/// TDY, TX, TDX, Index, N, DYNAMIC_N, C, the axes (add_axes()), DY_STRIDE_N and the like (also of x, indices and dx),
/// HAS_INDICES, MODE, ALPHA and BETA.
Prelude pool_backward_prelude(const PoolBackwardProblem& pool);

/// Bytes of the operands that have to move between device memory and the SMs.
double compulsory_bytes(const PoolBackwardProblem& pool);

}  // namespace kiln::descriptor
