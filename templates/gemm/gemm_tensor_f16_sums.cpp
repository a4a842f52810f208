#include "contraction/tensor_product.h"
#include "gemm/gemm_contraction.h"

namespace kiln {

Algorithm gemm_tensor_f16_sums() {
  return descriptor::f16_sums_contraction<descriptor::gemm_contractions>("gemm/gemm_tensor.cu", "gemm",
                                                                         descriptor::Bring::copied);
}

}  // namespace kiln
