// The operand of pooling's gradient that not every mode reads.
#pragma once

#include "kiln/kiln.h"
#include "kiln/pool.h"
#include "tensor.h"

namespace kiln::capi {

/// `x`, or `dx` where the mode does not read x. Throws as tensor_of().
inline Tensor read_by_gradient(const kiln_pool_options& given, const kiln_tensor* x, const Tensor& dx,
                               const char* function) {
  return given.mode == KILN_POOL_MAX ? tensor_of(x, function, "x") : dx;
}

}  // namespace kiln::capi
