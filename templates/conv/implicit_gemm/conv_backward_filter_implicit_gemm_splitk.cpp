#include "contraction/simt_split.h"
#include "conv/conv_contractions.h"

namespace kiln {

Algorithm conv_backward_filter_implicit_gemm_splitk() {
  return descriptor::split_contraction("conv/implicit_gemm/conv_backward_filter_implicit_gemm_splitk.cu",
                                       "conv_backward_filter", descriptor::filter_contractions,
                                       {16, 4, 2, 8, 32, 64, 128, 256});
}

}  // namespace kiln
