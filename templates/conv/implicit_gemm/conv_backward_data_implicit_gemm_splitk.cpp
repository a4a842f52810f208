#include "contraction/simt_split.h"
#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise.h"

namespace kiln {

Algorithm conv_backward_data_implicit_gemm_splitk() {
  return descriptor::split_contraction("conv/implicit_gemm/conv_backward_data_implicit_gemm_splitk.cu",
                                       "conv_backward_data", descriptor::data_products, {4, 2, 8, 16, 32},
                                       descriptor::refusal_of_depthwise);
}

}  // namespace kiln
