// Parts shared by the typed views of convolution and of its gradients: pads, strides, dilations, groups, the grid of
// regions, arithmetic, blend.
//
// conv_forward, conv_backward_data and conv_backward_filter have one filter for each k. The operations local_conv_*
// are the same sums with one for each k of each region of a grid over the outputs:
//
//   local_conv_forward: y[n,k,p,q] = sum over c,r,s of x[n, g*C/groups + c, p*stride_h - pad_top + r*dilation_h, ...] *
//   w[region(p,q)*K + k,c,r,s], and its gradients dx and dw accordingly.
//
// Along an axis of P outputs and GP regions output p belongs to region floor(p * GP / P), so that every region has
// floor(P/GP) or ceil(P/GP) neighbouring outputs; regions are counted with the last axis fastest, region(p,q) =
// floor(p*GP/P) * GQ + floor(q*GQ/Q). The grid P x Q is the locally connected layer, 1 x 1 the ordinary convolution.
//
// The filters of a region stand behind those of the region before it along dimension 0 of w, (GP*GQ*K), C/groups, R, S,
// as those of groups do; or the regions are a dimension of w by themselves, (GP*GQ), K, C/groups, R, S, which may have
// any stride. The operations have names of their own because nothing that was written for one filter a k may serve
// them, and because cuDNN has no counterpart that they could be compared with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

/// The parameters of the convolution that is asked for, or whose gradient is, and those of the call.
struct ConvPass : WindowSteps {
  int64_t groups = 1;
  bool mirrored = false;  ///< mode=convolution
  /// Regions along each spatial axis, of a local convolution; empty: one filter for all outputs. For request(), one
  /// value may stand for all axes, and 0 for as many regions as there are outputs.
  std::vector<int64_t> grid;
  Arithmetic arithmetic;
  Blend blend;
  bool dynamic_batch = false;
  bool constant_weights = false;
};

/// Whether the filters `w`, or dw, of a convolution with `axes` spatial axes have a dimension for the regions.
inline bool has_regions(const TensorSpec& w, int axes) {
  return w.rank() == axes + 3;
}

/// `w`, or dw, without such a dimension: K for each region, C/groups and the window. The strides are those of the
/// filters of a region; from one region to the next it is region_stride().
TensorSpec without_regions(const TensorSpec& w, int axes);
/// In elements, where a region has `k` filters.
int64_t region_stride(const TensorSpec& w, int axes, int64_t k);

/// The regions along one axis. The default is an axis that is not there: one output in one region.
struct RegionAxis {
  int64_t outputs = 1;
  int64_t regions = 1;

  int64_t region_of(int64_t output) const { return output * regions / outputs; }
  /// The first output of `region`; that of region number `regions` is `outputs`.
  int64_t first(int64_t region) const { return (region * outputs + regions - 1) / regions; }
  /// Outputs of the region that has the most.
  int64_t longest() const { return (outputs + regions - 1) / regions; }
  bool even() const { return outputs % regions == 0; }
};

/// The regions of the outputs `y` (N, K and spatial dimensions) of a local convolution, or the one that all outputs of
/// another are in.
class RegionGrid {
 public:
  RegionGrid(const ConvPass& pass, const TensorSpec& y);

  const RegionAxis& axis(int axis) const { return axes_[static_cast<size_t>(axis)]; }
  int64_t count() const;
  /// The region of the output at `position`, one coordinate an axis.
  int64_t region_of(std::span<const int64_t> position) const;

 private:
  std::vector<RegionAxis> axes_;
};

}  // namespace kiln
