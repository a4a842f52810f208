// Parts shared by the descriptors of im2col and col2im: the constants of a problem, and how its operands lie.
#pragma once

#include <cstdint>
#include <string>

#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"
#include "descriptor/window.h"
#include "kiln/generator/operations/im2col.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: its operands have three spatial dimensions (with_three_axes()), whatever the
/// request has.
struct ColumnsProblem : SpatialAxes {
  static ColumnsProblem of(const Request& request);

  TensorSpec images, unfolded;  ///< x and y of im2col, y and x of col2im.
  bool sums = false;            ///< col2im
  Blend blend;
  bool dynamic_batch = false;

  int64_t n() const { return images.extents[dimension::batch]; }
  int64_t c() const { return images.extents[dimension::channel]; }
  int64_t k() const { return unfolded.extents[dimension::channel]; }
  const TensorSpec& result() const { return sums ? images : unfolded; }
  /// Elements of one image.
  int64_t elements_per_image() const { return c() * planes.extent * rows.extent * columns.extent; }
  /// Elements of columns for each of them.
  double columns_per_element() const {
    return static_cast<double>(k() * pixels_per_image()) / static_cast<double>(elements_per_image());
  }
};

/// TX, TY, Index, N, DYNAMIC_N, C, K, the axes (add_axes(), windows fixed), X_STRIDE_N and the like, also of Y, ALPHA
/// and BETA.
Prelude columns_prelude(const ColumnsProblem& problem);

/// Traffic if each of `threads` threads makes `results`, with `loads` loads of an element, each of which costs it
/// `lane_bytes_of_x`.
StreamingWork columns_work(const ColumnsProblem& problem, double threads, double results, double loads,
                           double lane_bytes_of_x);

}  // namespace kiln::descriptor
