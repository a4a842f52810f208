// The descriptors of products whose M or N is a few: lib/gemm_thin.cuh.
#pragma once

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// gemm/gemm_thin.cu.
Algorithm thin_product();
/// gemm/gemm_thin_splitk.cu.
Algorithm thin_product_splitk();

}  // namespace kiln::descriptor
