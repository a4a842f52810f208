// Matrix products as contractions.
//
// c = a b is the convolution of an image of one row, whose M pixels have K channels, with N filters of one tap: so its
// operands are found in memory. Batches of products are the business of ProductBatch and lib/gemm_batch.cuh.
#pragma once

#include "contraction/contractions.h"
#include "kiln/generator/operations/gemm.h"

namespace kiln::descriptor {

/// The one contraction of a request of gemm. With a dynamic batch, there is one row for each n.
Contractions gemm_contractions(const Request& request);

/// Strides of `spec`, a, b, c or a residual, along the batch dimensions of a product, outermost first, 0 where its
/// extent is 1 and for dimensions that it lacks.
std::array<int64_t, 3> batch_strides(const TensorSpec& spec);

/// The extents of the batch dimensions of c, with 1 for those that it lacks.
std::array<int64_t, 3> batch_extents(const TensorSpec& c);

}  // namespace kiln::descriptor
