#include "contraction/simt_product.h"
#include "conv/conv_contractions.h"

namespace kiln {

Algorithm local_conv_backward_filter_implicit_gemm() {
  return descriptor::tiled_contraction("conv/implicit_gemm/local_conv_backward_filter_implicit_gemm.cu",
                                       "local_conv_backward_filter", descriptor::filter_contractions);
}

}  // namespace kiln
