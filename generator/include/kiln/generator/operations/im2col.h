// im2col and col2im: images as columns of windows and back, the typed views of their requests.
#pragma once

#include <cstdint>

#include "kiln/generator/operations/pool_window.h"
#include "kiln/generator/request.h"

namespace kiln {

/// y[n, (c*R + r)*S + s, p, q] = x[n, c, p*stride_h - pad_top + r*dilation_h, q*stride_w - pad_left + s*dilation_w]; 0
/// where that is outside x.
///
/// x: N,C,H,W   y: N,C*R*S,P,Q, with P of the floor formula of conv_forward. 1-D: x is N,C,W and y N,C*S,Q. 3-D:
/// N,C,D,H,W and N,C*T*R*S,Z,P,Q. `window=global` spans all of x. Dtypes are converted as by TensorTransform.
struct Im2col : PoolWindow {
  TensorSpec x, y;
  Blend blend;
  bool dynamic_batch = false;

  static Im2col of(const Request& request);
  /// Makes the request; y may have no extents (inferred).
  Request request() const;

  int axes() const { return x.rank() - 2; }
  WindowAxis axis(int axis) const { return axis_between(x, y, axis); }
};

/// y[n,c,h,w] = sum over r,s of x[n, (c*R + r)*S + s, p, q] with p*stride_h - pad_top + r*dilation_h = h and
/// q*stride_w - pad_left + s*dilation_w = w: each element that im2col copies from (c,h,w). 0 where there is none.
///
/// x: as im2col's y   y: N,C,H,W, as im2col's x. 1-D and 3-D likewise. Sums are in f32, in the order of r, then s.
struct Col2im : PoolWindow {
  TensorSpec x, y;
  Blend blend;
  bool dynamic_batch = false;

  static Col2im of(const Request& request);
  /// Makes the request. Throws as Request::parse does.
  Request request() const;

  int axes() const { return y.rank() - 2; }
  WindowAxis axis(int axis) const { return axis_between(y, x, axis); }
};

}  // namespace kiln
