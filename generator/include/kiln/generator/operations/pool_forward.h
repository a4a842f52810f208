// pool_forward: pooling in one to three dimensions, the typed view of its requests.
#pragma once

#include <cstdint>

#include "kiln/generator/operations/pool_window.h"
#include "kiln/generator/request.h"

namespace kiln {

/// y[n,c,p,q] = mode over r,s of x[n, c, p*stride_h - pad_top + r*dilation_h, q*stride_w - pad_left + s*dilation_w].
///
/// x: N,C,H,W   y: N,C,P,Q. P is the floor formula of conv_forward, or with ceil=1 its ceiling, less the last window
/// if that would start beyond H + pad_top (as PyTorch and ONNX define it). `window=global` spans all of x.
/// 1-D: x is N,C,W and y N,C,Q. 3-D: N,C,D,H,W and N,C,Z,P,Q.
/// indices: as y, i32, for max only: where in its channel of x each maximum stands, counted in logical order (h*W + w).
/// Among equal ones the first in window order, among NaNs the last; -1 for a window without an element inside x.
/// alpha, beta and epilogues do not concern them. avg_padded divides by the window clipped to [-pad_begin, extent +
/// pad_end), as PyTorch's count_include_pad. x and y of mode max may hold integers.
struct PoolForward : Pooling {
  TensorSpec x, y;
  TensorSpec indices;  ///< Without extents: not asked for.
  Blend blend;
  bool dynamic_batch = false;

  static PoolForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred by the floor formula).
  Request request() const;

  int axes() const { return x.rank() - 2; }
  WindowAxis axis(int axis) const { return axis_between(x, y, axis); }

  int64_t n() const { return x.extents[0]; }
  int64_t c() const { return x.extents[1]; }
};

}  // namespace kiln
