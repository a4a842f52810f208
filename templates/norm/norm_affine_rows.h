// The rows of norm_affine, and the constants of its kernels: shared by the descriptors.
#pragma once

#include "norm/norm_rows.h"

namespace kiln::descriptor {

/// x, w, b, scale and shift as rows along the request's axes.
struct AffineRows : NormRows {
  static AffineRows of(const Request& request);
  /// The same for kernels that take x by vectors: of the other operands, the first element alone that each row has.
  static AffineRows firsts_of(const Request& request);

  Rows pairs;  ///< scale, shift, w and b: all elements that each row has of them.
};

/// Adds what lib/norm_affine.cuh and lib/store.cuh ask for, and PAIRS.
void add_affine(Prelude& prelude, const AffineRows& rows);

}  // namespace kiln::descriptor
