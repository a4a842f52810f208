// gemm: matrix products, one or a batch of them, the typed view of their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], for each element of up to three batch dimensions in front.
///
/// a: ...,M,K   b: ...,K,N   c: ...,M,N   bias: N   residual: as c
/// All have the same number of dimensions, 2 to 5. A batch dimension of c is that of a or of b; the other's may be 1:
/// it is used again for every element (broadcast). Any strides: a transposed matrix is one whose strides are swapped.
/// With a dynamic batch, which only products without batch dimensions may have, M is the batch.
struct Gemm {
  TensorSpec a, b, c;
  std::optional<TensorSpec> bias, residual;
  Arithmetic arithmetic;
  Blend blend;
  std::vector<EpilogueStage> epilogue;
  bool dynamic_batch = false;

  /// Reads a valid request of this operation.
  static Gemm of(const Request& request);
  /// Makes the request; c may have no extents (inferred). Throws as Request::parse does.
  Request request() const;

  int batch_dimensions() const { return c.rank() - 2; }
  int64_t m() const { return c.extents[c.extents.size() - 2]; }
  int64_t n() const { return c.extents.back(); }
  int64_t k() const { return a.extents.back(); }
  /// Matrix products: the elements of the batch dimensions.
  int64_t products() const;
};

}  // namespace kiln
