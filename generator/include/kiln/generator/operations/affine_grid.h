// affine_grid, and its gradient by the matrices: positions of an affine map, for grid_sample; the typed views of their
// requests.
#pragma once

#include "kiln/generator/operations/grid_sample.h"
#include "kiln/generator/request.h"

namespace kiln {

/// grid[n,p,q,i] = theta[n,i,0] b(q,Q) + theta[n,i,1] b(p,P) + theta[n,i,2].
///
/// theta: N,2,3   grid: N,P,Q,2, the coordinates along w and h. 3-D: N,3,4 and N,Z,P,Q,3 (w, h, d), with b(z,Z) behind
/// b(p,P). b are evenly spaced from -1 to 1 and rounded to f32 once:
///
///   ends=edges: b(i,size) = (2i + 1 - size) / size      ends=centres: (2i + 1 - size) / (size - 1), of one element 0
struct AffineGrid {
  TensorSpec theta, grid;
  GridEnds ends = GridEnds::edges;
  Blend blend;
  bool dynamic_batch = false;

  static AffineGrid of(const Request& request);
  /// Makes the request; grid has to have extents. Throws as Request::parse does.
  Request request() const;
};

/// dtheta[n,i,j] = the sum over the positions of dgrid[n,p,q,i] times what theta[n,i,j] is multiplied by: a b, or 1.
struct AffineGridBackward {
  TensorSpec dgrid, dtheta;
  GridEnds ends = GridEnds::edges;
  Blend blend;
  bool dynamic_batch = false;

  static AffineGridBackward of(const Request& request);
  /// Makes the request; dtheta may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

}  // namespace kiln
