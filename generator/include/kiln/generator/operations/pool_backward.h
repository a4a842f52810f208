// pool_backward: the gradient of pooling, the typed view of its requests.
#pragma once

#include <cstdint>

#include "kiln/generator/operations/pool_window.h"
#include "kiln/generator/request.h"

namespace kiln {

/// dx[n,c,h,w] = sum over the windows (p,q) that hold (h,w) of dy[n,c,p,q] * the derivative of y[n,c,p,q] by
/// x[n,c,h,w], for y = pool(x) as PoolForward defines it.
///
/// max: 1 for the element that the window's maximum is, 0 for all others. It is the first among equal ones in the order
/// of the window (d, h, w; the last fastest); where there is a NaN it is the last NaN, as in PyTorch. avg, avg_padded:
/// 1 over the number that the average divides by. A window without an element inside x passes nothing on.
///
/// For max, `indices` of the forward pass may stand in the place of x. An index outside its window passes nothing on.
/// This is max unpooling too: y = dx from x = dy.
///
/// dx: N,C,H,W   dy: N,C,P,Q   indices: as dy, i32   x: as dx, for max only: averages do not depend on it, and their
/// requests do not have it. 1-D and 3-D as for PoolForward.
struct PoolBackward : Pooling {
  TensorSpec dy, x, indices, dx;  ///< x and indices without extents for averages; one of them for max.
  Blend blend;
  bool dynamic_batch = false;

  static PoolBackward of(const Request& request);
  /// Makes the request; where there is an x, dx may have no extents (as x).
  Request request() const;

  int axes() const { return dx.rank() - 2; }
  WindowAxis axis(int axis) const { return axis_between(dx, dy, axis); }

  int64_t n() const { return dx.extents[0]; }
  int64_t c() const { return dx.extents[1]; }
};

}  // namespace kiln
