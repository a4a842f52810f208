// Positions of affine maps for grid_sample(), and their gradient: spatial transformers.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/affine_grid.h"
#include "kiln/tensor.h"

namespace kiln {

struct AffineGridOptions {
  GridEnds ends = GridEnds::edges;  ///< centres: PyTorch's align_corners=True.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues grid = epilogue(alpha * g + beta * grid) on `stream` and returns without waiting: g are the positions to
/// which the affine map `theta` of an image moves those of its pixels. AffineGrid has the formulas.
///
/// theta: N,2,3   grid: N,P,Q,2, along w and h; 3-D: N,3,4 and N,Z,P,Q,3 (w, h, d). Any strides. grid must not overlap
/// theta. Bitwise reproducible. An empty batch is a no-op. Errors, first call and threads as for conv_forward().
void affine_grid(Context& context, const Tensor& theta, const Tensor& grid, const AffineGridOptions& options = {},
                 Stream stream = nullptr);

/// Enqueues dtheta = epilogue(alpha * d + beta * dtheta) on `stream` and returns without waiting: d is the gradient of
/// affine_grid() with respect to theta.
///
/// dgrid: as grid there   dtheta: as theta there. Any strides. Bitwise reproducible. An empty batch is a no-op. Errors,
/// first call, workspace and threads as for conv_forward().
void affine_grid_backward(Context& context, const Tensor& dgrid, const Tensor& dtheta,
                          const AffineGridOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln
