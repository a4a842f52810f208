// conv_backward_filter: the gradient of a convolution by its filter, and local_conv_backward_filter; the typed view of
// their requests.
#pragma once

#include <cstdint>

#include "kiln/generator/operations/conv_pass.h"

namespace kiln {

/// dw of y = conv_forward(x, w), given dy:
///
/// dw[k,c,r,s] = sum over n,p,q of dy[n,k,p,q] * x[n, g*C/groups + c, p*stride_h - pad_top + r*dilation_h, q*stride_w -
/// pad_left + s*dilation_w], with g the group of k and x zero outside its extents.
///
/// x: N,C,H,W   dy: N,K,P,Q   dw: K,C/groups,R,S, in one to three dimensions.
/// A grid makes it local_conv_backward_filter, whose sums are over the outputs of the region of the filter, and whose
/// dw may have a dimension more: conv_pass.h.
struct ConvBackwardFilter : ConvPass {
  TensorSpec x, dy, dw;

  /// Reads a valid request of this operation.
  static ConvBackwardFilter of(const Request& request);
  /// Makes the request. Throws as Request::parse does.
  Request request() const;

  int axes() const { return x.rank() - 2; }
  /// An axis of the forward convolution: from x to dy.
  WindowAxis axis(int axis) const { return between(x, *(dw.extents.end() - axes() + axis), dy, axis); }

  int64_t n() const { return x.extents[0]; }
  int64_t c() const { return x.extents[1]; }
  int64_t k() const { return dy.extents[1]; }
  int64_t c_per_group() const { return *(dw.extents.end() - axes() - 1); }
  int64_t k_per_group() const { return k() / groups; }
  RegionGrid regions() const { return {*this, dy}; }
};

}  // namespace kiln
