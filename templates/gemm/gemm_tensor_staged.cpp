#include "contraction/tensor_product.h"
#include "gemm/gemm_contraction.h"

namespace kiln {

Algorithm gemm_tensor_staged() {
  return descriptor::tensor_contraction("gemm/gemm_tensor_staged.cu", "gemm", descriptor::gemm_contractions,
                                        descriptor::Bring::staged);
}

}  // namespace kiln
