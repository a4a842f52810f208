// resize_backward: the gradient of resize, the typed view of its requests.
#pragma once

#include "kiln/generator/operations/resize.h"
#include "kiln/generator/request.h"

namespace kiln {

/// dx[n,c,h,w] = sum over the elements of y that x[n,c,h,w] is a part of: dy[n,c,p,q] times the weight that it has for
/// them, for y = resize(x) as Resize defines it. An element of x that stands for others outside x has their weights
/// too.
///
/// dy: N,C,P,Q   dx: N,C,H,W. 1-D and 3-D as for Resize. Sums are in f32, in an order that does not depend on the
/// device's scheduling.
struct ResizeBackward : Resizing {
  TensorSpec dy, dx;
  Blend blend;
  bool dynamic_batch = false;

  static ResizeBackward of(const Request& request);
  /// Makes the request. Throws as Request::parse does.
  Request request() const;

  int axes() const { return dx.rank() - 2; }
  ResizeAxis axis(int axis) const { return axis_between(dx, dy, axis); }
};

}  // namespace kiln
