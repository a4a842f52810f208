// grid_sample, and its gradients by x and by the grid: elements of x at positions that a tensor gives; the typed views
// of their requests.
#pragma once

#include <cstdint>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

/// Elements of x from which an element of y is made.
enum class GridMode {
  linear,   ///< Two elements along each axis.
  nearest,  ///< The nearest; of two, the one of even number.
  cubic,    ///< Four elements along each axis, by Keys' kernel with a = -3/4; two axes only.
};

/// Elements outside x.
enum class GridPadding {
  zeros,       ///< They are 0.
  border,      ///< They are the nearest ones of x.
  reflection,  ///< They are those of x, mirrored at its ends as often as it takes.
};

/// Positions that -1 and 1 name along an axis.
enum class GridEnds {
  edges,    ///< The outer edges of the first and the last element.
  centres,  ///< Their centres: PyTorch's align_corners=True.
};

std::string_view to_string(GridMode mode);
std::string_view to_string(GridPadding padding);
std::string_view to_string(GridEnds ends);

/// The most elements of x along an axis, and positions of an affine grid: f32 has every position among them.
inline constexpr int64_t most_elements_of_grid_axis = int64_t{1} << 24;

/// Words that the three share. A coordinate g of the grid is the position, in f32 with each operation rounded,
///
///   ends=edges: ((g + 1) size - 1) / 2      ends=centres: (g + 1) / 2 (size - 1)
///
/// of x along an axis of `size` elements. So reference and kernels agree on the elements around it.
///
/// padding=border: positions are moved to 0 and size - 1. padding=reflection: they are mirrored at -1/2 and size - 1/2
/// (centres: 0 and size - 1), and then moved. mode=cubic does that to each of the elements. NaN is outside x with
/// padding=zeros. Elsewhere it counts as 0; but with mode=cubic a position that is not finite makes NaN.
struct GridSampling {
  GridMode mode = GridMode::linear;
  GridPadding padding = GridPadding::zeros;
  GridEnds ends = GridEnds::edges;
  Blend blend;
  bool dynamic_batch = false;
};

/// y[n,c,p,q] = the sum over elements of x[n,c] around the position grid[n,p,q], each times its weight along h and
/// along w.
///
/// x: N,C,H,W   grid: N,P,Q,2, the coordinates along w and h   y: N,C,P,Q. 3-D: N,C,D,H,W, N,Z,P,Q,3 (w, h, d) and
/// N,C,Z,P,Q. With t the distance of a position behind the element before it, weights are 1 - t and t (linear), those
/// of Resize (cubic), or 1 (nearest). Jaderberg et al., Spatial Transformer Networks (2015).
struct GridSample : GridSampling {
  TensorSpec x, grid, y;

  static GridSample of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

/// dx[n,c,h,w] = the sum over the elements of y that x[n,c,h,w] is a part of, of dy times its weight.
struct GridSampleBackwardData : GridSampling {
  TensorSpec dy, grid, dx;

  static GridSampleBackwardData of(const Request& request);
  /// Makes the request; dx has to have extents. Throws as Request::parse does.
  Request request() const;
};

/// dgrid[n,p,q,i] = the sum over c of dy[n,c,p,q] times the derivative of y[n,c,p,q] by coordinate i: 0 with
/// mode=nearest, and where a position was moved to an end of x.
struct GridSampleBackwardGrid : GridSampling {
  TensorSpec dy, x, grid, dgrid;

  static GridSampleBackwardGrid of(const Request& request);
  /// Makes the request; dgrid may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

}  // namespace kiln
