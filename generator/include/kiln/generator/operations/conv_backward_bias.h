// conv_backward_bias: the gradient of a convolution by its bias, the typed view of its requests.
#pragma once

#include <cstdint>

#include "kiln/generator/request.h"

namespace kiln {

/// db[k] = sum over n,p,q of dy[n,k,p,q].
///
/// dy: N,K and up to three spatial dimensions   db: K
struct ConvBackwardBias {
  TensorSpec dy, db;  ///< For request(), db may have no extents (inferred: of dy's dtype).
  Blend blend;
  bool dynamic_batch = false;

  /// Reads a valid request of this operation.
  static ConvBackwardBias of(const Request& request);
  /// Makes the request. Throws as Request::parse does.
  Request request() const;

  int64_t n() const { return dy.extents[0]; }
  int64_t k() const { return dy.extents[1]; }
  /// Elements of one channel of one image.
  int64_t pixels() const;
};

}  // namespace kiln
