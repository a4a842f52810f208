// resize: x at other spatial extents, by the nearest element or interpolated, the typed view of its requests; and what
// its gradient shares with it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// Elements of x from which an element of y is made.
enum class ResizeMode {
  nearest,  ///< The element of x that is nearest to its position.
  linear,   ///< Two elements along each axis.
  cubic,    ///< Four elements along each axis, by Keys' kernel.
};

/// Where element i of y stands in x, with the scale s = y's extent / x's extent, or the one that is given.
enum class ResizeCoordinates {
  half_pixel,            ///< (i + 1/2) / s - 1/2
  half_pixel_symmetric,  ///< the same, with what a given scale leaves over (s * x's extent - y's) halved to both ends
  pytorch_half_pixel,    ///< half_pixel, but 0 where y has an extent of 1
  align_corners,         ///< i (x's extent - 1) / (s * x's extent - 1): first and last elements stand on each other
  asymmetric,            ///< i / s
  tf_half_pixel_for_nn,  ///< (i + 1/2) / s
};

/// Which element of x is nearest to a position.
enum class ResizeRounding {
  prefer_floor,  ///< The nearest; of two, the one before.
  prefer_ceil,   ///< The nearest; of two, the one behind.
  floor,         ///< The one before or at the position.
  ceil,          ///< The one at or behind the position.
};

/// The words of requests; "?" for a value that is none.
std::string_view to_string(ResizeMode mode);
std::string_view to_string(ResizeCoordinates coordinates);
std::string_view to_string(ResizeRounding rounding);

/// One axis of a resize. Positions are exact: element i of y stands at (i step + start) / denominator in x. So
/// reference and kernels agree where a position lies between two elements.
struct ResizeAxis {
  int64_t extent = 1, outputs = 1;  ///< Extents of x and of y.
  int64_t step = 0, start = 0, denominator = 1;

  /// Whether every position is that of an element, or x has one only: such an axis is not interpolated.
  bool is_whole() const { return extent == 1 || (step % denominator == 0 && start % denominator == 0); }
  /// The element at or before the position of element `output` of y; may lie outside x.
  int64_t element_before(int64_t output) const;
  /// How far the position lies behind that one, in units of 1 / denominator.
  int64_t beyond(int64_t output) const;
};

/// A scale as an exact fraction; 0 / 0: y's extent over x's.
struct ResizeScale {
  int64_t up = 0, down = 0;

  /// Makes the scale from an f32, which is a fraction. Throws Error(invalid_argument) for a scale that is not from 2^-7
  /// to 2^7; 0 is none.
  static ResizeScale of(float scale);
};

/// Where elements of y stand in x, and what weights elements of x have for them.
struct Resizing {
  ResizeMode mode = ResizeMode::nearest;
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  ResizeRounding rounding = ResizeRounding::prefer_floor;  ///< Rounding of mode nearest.
  bool excludes_outside = false;
  std::vector<ResizeScale> scales;  ///< One a spatial axis; none: the ratios of the extents.

  /// Spatial axis number `axis` of tensors with the extents of x and of y.
  ResizeAxis axis_between(const TensorSpec& x, const TensorSpec& y, int axis) const;
  /// Elements of x that an element of y is made of along `axis`: 1, 2 or 4.
  int taps(const ResizeAxis& axis) const;
};

/// y[n,c,p,q] = the sum over elements of x near the position of p,q, each times its weight along h and along w.
///
/// x: N,C,H,W   y: N,C,P,Q. 1-D: N,C,W; 3-D: N,C,D,H,W. N and C are the same. As ONNX's Resize of opset 19 without
/// antialias. With t, 0 <= t < 1, the distance of a position behind the element before it:
///
///   linear: weights 1 - t and t of that element and the next
///   cubic: a t (1 - t)^2, 1 - t^2 (a + 3 - (a + 2) t), the same of 1 - t, and a (1 - t) t^2 of the four around, where
///   a
///          is the number `cubic` of the call
///
/// Elements outside x are the nearest of x along that axis; with `excludes_outside` (cubic only) their weights are 0,
/// and the others are divided by their sum. Sums are in f32; dtypes are converted as by TensorTransform.
struct Resize : Resizing {
  TensorSpec x, y;
  Blend blend;
  bool dynamic_batch = false;

  static Resize of(const Request& request);
  /// Makes the request; y may have no extents (x's times the scales, rounded down). Throws as Request::parse does.
  Request request() const;

  int axes() const { return x.rank() - 2; }
  ResizeAxis axis(int axis) const { return axis_between(x, y, axis); }
};

}  // namespace kiln
