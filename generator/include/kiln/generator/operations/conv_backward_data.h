// conv_backward_data: the gradient of a convolution by its input, which is transposed convolution, and
// local_conv_backward_data; the typed view of their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/generator/operations/conv_pass.h"

namespace kiln {

/// dx of y = conv_forward(x, w), given dy:
///
/// dx[n, g*C/groups + c, h, w] = sum over k of group g and over all p,r with p*stride_h - pad_top + r*dilation_h = h,
/// and q,s likewise, of dy[n,k,p,q] * w[k,c,r,s].
///
/// dy: N,K,P,Q   w: K,C/groups,R,S   dx: N,C,H,W   bias: C   residual: as dx, in one to three dimensions. The
/// convolution of dx must have the extents of dy, which leaves dx up to stride_h possible heights: H = (P-1)*stride_h +
/// dilation_h*(R-1) + 1 - pad_top
/// - pad_bottom + output_pad_h, with 0 <= output_pad_h < stride_h.
/// A grid makes it local_conv_backward_data, whose w may have a dimension more: conv_pass.h.
struct ConvBackwardData : ConvPass {
  TensorSpec dy, w, dx;
  std::optional<TensorSpec> bias, residual;
  std::vector<EpilogueStage> epilogue;
  /// For request(), where dx has no extents: rows and columns that no window needs, one value an axis, or none.
  std::vector<int64_t> output_pad;

  /// Reads a valid request of this operation.
  static ConvBackwardData of(const Request& request);
  /// Makes the request; dx may have no extents (inferred). Throws as Request::parse does.
  Request request() const;

  int axes() const { return dx.rank() - 2; }
  /// An axis of the forward convolution: from dx to dy.
  WindowAxis axis(int axis) const { return between(dx, *(w.extents.end() - axes() + axis), dy, axis); }

  int64_t n() const { return dx.extents[0]; }
  int64_t c() const { return dx.extents[1]; }
  int64_t k() const { return dy.extents[1]; }
  int64_t c_per_group() const { return *(w.extents.end() - axes() - 1); }
  int64_t k_per_group() const { return k() / groups; }
  RegionGrid regions() const { return {*this, dy}; }
};

}  // namespace kiln
