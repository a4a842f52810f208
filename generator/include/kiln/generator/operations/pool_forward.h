// pool_forward: pooling in one to three dimensions, the typed view of its requests.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

enum class PoolMode {
  max,         ///< Largest element of the window inside x; NaN if any is NaN; -inf if none is inside.
  avg,         ///< Sum over the elements inside x, divided by their number; 0 if none is inside.
  avg_padded,  ///< Sum over the elements inside x, divided by the number of window elements inside the padded x.
};

/// y[n,c,p,q] = mode over r,s of x[n, c, p*stride_h - pad_top + r*dilation_h, q*stride_w - pad_left + s*dilation_w].
///
/// x: N,C,H,W   y: N,C,P,Q. P is the floor formula of conv_forward, or with ceil=1 its ceiling, less the last window
/// if that would start beyond H + pad_top (as PyTorch and ONNX define it). `window=global` spans all of x.
/// 1-D: x is N,C,W and y N,C,Q. 3-D: N,C,D,H,W and N,C,Z,P,Q.
/// avg_padded divides by the window clipped to [-pad_begin, extent + pad_end), as PyTorch's count_include_pad.
struct PoolForward {
  TensorSpec x, y;
  PoolMode mode = PoolMode::max;
  /// One value a spatial axis, as for ConvForward; the window has no default.
  std::vector<int64_t> window, pad_begin, pad_end, stride, dilation;
  Blend blend;
  bool dynamic_batch = false;

  static PoolForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred by the floor formula).
  Request request() const;

  int axes() const { return x.rank() - 2; }
  WindowAxis axis(int axis) const;

  int64_t n() const { return x.extents[0]; }
  int64_t c() const { return x.extents[1]; }
};

}  // namespace kiln
