#include "contraction/simt_product.h"
#include "gemm/gemm_contraction.h"

namespace kiln {

Algorithm gemm_tiled() {
  return descriptor::tiled_contraction("gemm/gemm_tiled.cu", "gemm", descriptor::gemm_contractions);
}

}  // namespace kiln
