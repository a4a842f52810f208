#include "contraction/tensor_product.h"
#include "gemm/gemm_contraction.h"

namespace kiln {

Algorithm gemm_tensor_persistent() {
  return descriptor::persistent_tensor_contraction("gemm/gemm_tensor_persistent.cu", "gemm",
                                                   descriptor::gemm_contractions);
}

}  // namespace kiln
