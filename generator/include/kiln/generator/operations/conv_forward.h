// conv_forward: 2-D convolution, the typed view of its requests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// y[n,k,p,q] = sum over c,r,s of x[n, g*C/groups + c, p*stride_h - pad_top + r*dilation_h, q*stride_w - pad_left +
/// s*dilation_w] * w[k,c,r,s], with g the group of k and x zero outside its extents (cross-correlation, as all
/// frameworks call convolution). `mode=convolution` mirrors the filter: w[k,c,R-1-r,S-1-s].
///
/// x: N,C,H,W   w: K,C/groups,R,S   y: N,K,P,Q   bias: K   residual: as y
/// P = floor((H + pad_top + pad_bottom - dilation_h*(R-1) - 1) / stride_h) + 1, and so for Q.
struct ConvForward {
  TensorSpec x, w, y;
  std::optional<TensorSpec> bias, residual;
  std::array<int64_t, 2> pad_begin{0, 0}, pad_end{0, 0};  ///< h, w
  std::array<int64_t, 2> stride{1, 1}, dilation{1, 1};    ///< h, w
  int64_t groups = 1;
  bool mirrored = false;  ///< mode=convolution
  Arithmetic arithmetic;
  Blend blend;
  std::vector<EpilogueStage> epilogue;
  bool dynamic_batch = false;

  /// Reads a valid request of this operation.
  static ConvForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;

  int64_t n() const { return x.extents[0]; }
  int64_t c() const { return x.extents[1]; }
  int64_t h() const { return x.extents[2]; }
  int64_t width() const { return x.extents[3]; }
  int64_t k() const { return w.extents[0]; }
  int64_t c_per_group() const { return w.extents[1]; }
  int64_t k_per_group() const { return k() / groups; }
  int64_t r() const { return w.extents[2]; }
  int64_t s() const { return w.extents[3]; }
  int64_t p() const { return y.extents[2]; }
  int64_t q() const { return y.extents[3]; }
};

}  // namespace kiln
