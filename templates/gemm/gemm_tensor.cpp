#include "contraction/tensor_product.h"
#include "gemm/gemm_contraction.h"

namespace kiln {

Algorithm gemm_tensor() {
  return descriptor::tensor_contraction("gemm/gemm_tensor.cu", "gemm", descriptor::gemm_contractions,
                                        descriptor::Bring::copied);
}

}  // namespace kiln
