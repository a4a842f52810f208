// dropout: random elements become 0, the typed view of its requests.
#pragma once

#include "kiln/generator/request.h"

namespace kiln {

/// y = x / (1 - p) where an element is kept, else 0, whatever x is; x and y of equal extents, any strides, in place
/// too. The gradient by x is the same function of dy.
///
/// p (a scalar of the call), seed and offset (integers of the call) say which elements are kept: element number e in
/// logical order has word e % 4 of Philox 4x32-10 with the key `seed` and the counter (e / 4, offset), and is kept
/// where the word's upper 24 bits, as a fraction of 1, are not below p.
struct Dropout {
  TensorSpec x, y;
  Blend blend;
  bool dynamic_batch = false;

  static Dropout of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

}  // namespace kiln
