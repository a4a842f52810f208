// softmax_backward: the gradient of softmax and log-softmax, the typed view of its requests.
#pragma once

#include <cstdint>

#include "kiln/generator/operations/softmax_forward.h"

namespace kiln {

/// The gradient with respect to x, given y = softmax(x) and dy, that with respect to y; all of equal extents, any
/// strides:
///
///   accurate: dx = y (dy - sum(y dy))        log: dx = dy - exp(y) sum(dy)
///
/// with sums along `axis`. It is what the formula gives for any y, one that no softmax made included; NaN in a row of y
/// or dy that takes part in its sum makes the row NaN.
struct SoftmaxBackward {
  TensorSpec y, dy, dx;
  int64_t axis = 1;
  SoftmaxMode mode = SoftmaxMode::accurate;
  Blend blend;
  bool dynamic_batch = false;

  static SoftmaxBackward of(const Request& request);
  /// Makes the request; dy and dx may have no extents (inferred).
  Request request() const;

  /// Elements of one row (along the axis).
  int64_t row_length() const { return y.extents[static_cast<size_t>(axis)]; }
};

}  // namespace kiln
