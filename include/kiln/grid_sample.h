// Sampling of images at positions that a grid gives, and its gradients: spatial transformers.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/grid_sample.h"
#include "kiln/tensor.h"

namespace kiln {

struct GridSampleOptions {
  GridMode mode = GridMode::linear;
  GridPadding padding = GridPadding::zeros;
  GridEnds ends = GridEnds::edges;  ///< centres: PyTorch's align_corners=True.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * s + beta * y) on `stream` and returns without waiting: s are the elements of x around
/// the positions of the grid, times their weights. GridSample has the formulas.
///
/// x: N,C,H,W   grid: N,P,Q,2, along w and h, -1 to 1 for x   y: N,C,P,Q; 3-D: N,C,D,H,W, N,Z,P,Q,3 (w, h, d) and
/// N,C,Z,P,Q. Any strides. y must not overlap the others. Bitwise reproducible. An empty batch is a no-op. Errors,
/// first call and threads as for conv_forward().
void grid_sample(Context& context, const Tensor& x, const Tensor& grid, const Tensor& y,
                 const GridSampleOptions& options = {}, Stream stream = nullptr);

/// Enqueues dx = epilogue(alpha * d + beta * dx) on `stream` and returns without waiting: d is the gradient of
/// grid_sample() with respect to x.
///
/// dy: as y there   grid: as there   dx: as x there. Any strides. Sums do not depend on the order of their terms:
/// results repeat bit for bit. The fast kernel takes 12 bytes of workspace for each element of dx. An empty batch is a
/// no-op. Errors, first call, workspace and threads as for conv_forward().
void grid_sample_backward_data(Context& context, const Tensor& dy, const Tensor& grid, const Tensor& dx,
                               const GridSampleOptions& options = {}, Stream stream = nullptr);

/// Enqueues dgrid = epilogue(alpha * d + beta * dgrid) on `stream` and returns without waiting: d is the gradient of
/// grid_sample() with respect to the grid.
///
/// dy: as y there   x, grid: as there   dgrid: as grid. Any strides. Bitwise reproducible. An empty batch is a no-op.
/// Errors, first call and threads as for conv_forward().
void grid_sample_backward_grid(Context& context, const Tensor& dy, const Tensor& x, const Tensor& grid,
                               const Tensor& dgrid, const GridSampleOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
