// Parts shared by the descriptors of resizing and of its gradient: the constants of a problem, and how its operands
// lie.
#pragma once

#include <cstdint>
#include <string>

#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"
#include "kiln/generator/operations/resize.h"
#include "kiln/generator/program.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: its operands have three spatial dimensions (with_three_axes()), whatever the
/// request has. Of a gradient x is dx and y is dy.
struct ResizeProblem : Resizing {
  static ResizeProblem of(const Request& request);

  TensorSpec x, y;
  Blend blend;
  bool dynamic_batch = false;
  ResizeAxis planes, rows, columns;
  int64_t all_taps = 1;  ///< Elements of x that an output is made of.

  int64_t n() const { return x.extents[dimension::batch]; }
  int64_t c() const { return x.extents[dimension::channel]; }
  int64_t pixels_per_image() const { return planes.outputs * rows.outputs * columns.outputs; }
  int64_t pixels_of_x() const { return planes.extent * rows.extent * columns.extent; }
};

/// TX, TY, Index, N, DYNAMIC_N, C, ALPHA and BETA, and what lib/resize.cuh needs.
Prelude resize_prelude(const ResizeProblem& resize);

/// One launch of `entry` with the arguments x, y, alpha, beta, user, n and cubic. The grid is the caller's to set.
Launch resize_launch(std::string entry, int threads);

/// Whether `vector` channels can move at once, in both operands.
bool channels_fit(const ResizeProblem& resize, int vector);

/// Traffic if each of `threads` threads that have work makes `outputs`, with `loads` loads of x of `load_bytes`, each
/// of which costs it `lane_bytes_of_x`.
StreamingWork resize_work(const ResizeProblem& resize, double threads, double outputs, double loads, double load_bytes,
                          double lane_bytes_of_x);

/// resize_prelude(), and MOST_COLUMNS of lib/resize_gradient.cuh, if `keeps_columns` and if they are few.
Prelude resize_backward_prelude(const ResizeProblem& resize, bool keeps_columns);

/// The largest number of outputs of an axis that the kernels of the gradient look at for one element.
int64_t most_outputs(const ResizeProblem& resize, const ResizeAxis& axis);

/// One launch of `entry` with the arguments dy, dx, alpha, beta, user, n and cubic. The grid is the caller's to set.
Launch resize_backward_launch(std::string entry, int threads);

/// Traffic if each of `threads` threads makes `elements` of dx, with loads of dy of `load_bytes`, `loads` for each of
/// its outputs, each of which costs it `lane_bytes_of_dy`.
StreamingWork resize_backward_work(const ResizeProblem& resize, double threads, double elements, double loads,
                                   double load_bytes, double lane_bytes_of_dy);

}  // namespace kiln::descriptor
