// conv_forward: convolution in one to three dimensions, and local_conv_forward; the typed view of their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/generator/operations/conv_pass.h"

namespace kiln {

/// y[n,k,p,q] = sum over c,r,s of x[n, g*C/groups + c, p*stride_h - pad_top + r*dilation_h, q*stride_w - pad_left +
/// s*dilation_w] * w[k,c,r,s], with g the group of k and x zero outside its extents (cross-correlation, as all
/// frameworks call convolution). `mode=convolution` mirrors the filter: w[k,c,R-1-r,S-1-s].
///
/// x: N,C,H,W   w: K,C/groups,R,S   y: N,K,P,Q   bias: K   residual: as y
/// P = floor((H + pad_top + pad_bottom - dilation_h*(R-1) - 1) / stride_h) + 1, and so for Q.
/// A grid makes it local_conv_forward, whose w holds a filter for each k of each region, and may have a dimension more:
/// conv_pass.h.
/// 1-D: N,C,W with K,C/groups,S and N,K,Q. 3-D: N,C,D,H,W with K,C/groups,T,R,S and N,K,Z,P,Q.
struct ConvForward : ConvPass {
  TensorSpec x, w, y;
  std::optional<TensorSpec> bias, residual;
  std::vector<EpilogueStage> epilogue;

  /// Reads a valid request of this operation.
  static ConvForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;

  int axes() const { return x.rank() - 2; }
  WindowAxis axis(int axis) const { return between(x, *(w.extents.end() - axes() + axis), y, axis); }

  int64_t n() const { return x.extents[0]; }
  int64_t c() const { return x.extents[1]; }
  int64_t k() const { return y.extents[1]; }
  int64_t c_per_group() const { return *(w.extents.end() - axes() - 1); }
  int64_t k_per_group() const { return k() / groups; }
  RegionGrid regions() const { return {*this, y}; }
};

}  // namespace kiln
