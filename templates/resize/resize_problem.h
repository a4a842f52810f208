// Parts shared by the descriptors of resizing: the constants of a problem, and how its operands lie.
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
/// request has.
struct ResizeProblem : Resize {
  static ResizeProblem of(const Request& request);

  ResizeAxis planes, rows, columns;
  int64_t all_taps = 1;  ///< Elements of x that an output is made of.

  int64_t n() const { return x.extents[dimension::batch]; }
  int64_t c() const { return x.extents[dimension::channel]; }
  int64_t pixels_per_image() const { return planes.outputs * rows.outputs * columns.outputs; }
};

/// TX, TY, Index, N, DYNAMIC_N, C, ALPHA and BETA, and what lib/resize.cuh needs.
Prelude resize_prelude(const ResizeProblem& resize);

/// One launch of `entry` with the arguments x, y, alpha, beta, user, n and cubic. The grid is the caller's to set.
Launch resize_launch(std::string entry, int threads);

/// Traffic if each of `threads` threads that have work makes `outputs`, with `loads` loads of x of `load_bytes`, each
/// of which costs it `lane_bytes_of_x`.
StreamingWork resize_work(const ResizeProblem& resize, double threads, double outputs, double loads, double load_bytes,
                          double lane_bytes_of_x);

}  // namespace kiln::descriptor
