#include "contraction/simt_split.h"
#include "gemm/gemm_contraction.h"

namespace kiln {

Algorithm gemm_splitk() {
  return descriptor::split_contraction("gemm/gemm_splitk.cu", "gemm", descriptor::gemm_contractions,
                                       {8, 4, 2, 16, 32, 64, 128, 256});
}

}  // namespace kiln
