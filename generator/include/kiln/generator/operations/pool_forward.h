// pool_forward: 2-D pooling, the typed view of its requests.
#pragma once

#include <array>
#include <cstdint>

#include "kiln/generator/request.h"

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
/// avg_padded divides by the window clipped to [-pad_begin, extent + pad_end), as PyTorch's count_include_pad.
struct PoolForward {
  TensorSpec x, y;
  PoolMode mode = PoolMode::max;
  std::array<int64_t, 2> window{1, 1};
  std::array<int64_t, 2> pad_begin{0, 0}, pad_end{0, 0};
  std::array<int64_t, 2> stride{1, 1}, dilation{1, 1};
  Blend blend;
  bool dynamic_batch = false;

  static PoolForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred by the floor formula).
  Request request() const;

  int64_t n() const { return x.extents[0]; }
  int64_t c() const { return x.extents[1]; }
  int64_t h() const { return x.extents[2]; }
  int64_t width() const { return x.extents[3]; }
  int64_t p() const { return y.extents[2]; }
  int64_t q() const { return y.extents[3]; }
};

}  // namespace kiln
