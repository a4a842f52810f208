#include "contraction/simt_product.h"
#include "conv/conv_contractions.h"

namespace kiln {

Algorithm local_conv_backward_data_implicit_gemm() {
  return descriptor::tiled_contraction("conv/implicit_gemm/local_conv_backward_data_implicit_gemm.cu",
                                       "local_conv_backward_data", descriptor::data_contractions);
}

}  // namespace kiln
