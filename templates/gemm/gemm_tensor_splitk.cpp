#include "contraction/tensor_product.h"
#include "gemm/gemm_contraction.h"

namespace kiln {

Algorithm gemm_tensor_splitk() {
  return descriptor::split_tensor_contraction("gemm/gemm_tensor_splitk.cu", "gemm", descriptor::gemm_contractions,
                                              descriptor::Bring::copied, {8, 4, 2, 3, 6, 12, 16, 24, 32, 64, 128});
}

}  // namespace kiln
