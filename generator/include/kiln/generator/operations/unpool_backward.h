// unpool_backward: the gradient of max unpooling, the typed view of its requests.
#pragma once

#include <cstdint>

#include "kiln/generator/operations/pool_window.h"
#include "kiln/generator/request.h"

namespace kiln {

/// dx[n,c,p,q] = dy[n,c] at the position that indices[n,c,p,q] names, counted in logical order (h*W + w); 0 where that
/// is no position of the window (p,q) inside dy: there unpooling passed nothing on. Windows that name one position each
/// get its element.
///
/// It is the gradient of pool_backward with indices, that of max unpooling by its input, and the second derivative of
/// maximum pooling. dy: N,C,H,W   indices: N,C,P,Q, i32   dx: N,C,P,Q. 1-D and 3-D as for PoolForward.
struct UnpoolBackward : PoolWindow {
  TensorSpec dy, indices, dx;
  Blend blend;
  bool dynamic_batch = false;

  static UnpoolBackward of(const Request& request);
  /// Makes the request; dx may have no extents (dtype of dy, layout of indices).
  Request request() const;

  int axes() const { return dy.rank() - 2; }
  WindowAxis axis(int axis) const { return axis_between(dy, dx, axis); }

  int64_t n() const { return dy.extents[0]; }
  int64_t c() const { return dy.extents[1]; }
};

}  // namespace kiln
