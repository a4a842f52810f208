#include "contraction/simt_product.h"
#include "conv/conv_contractions.h"

namespace kiln {

Algorithm conv_backward_filter_implicit_gemm() {
  return descriptor::tiled_contraction("conv/implicit_gemm/conv_backward_filter_implicit_gemm.cu",
                                       "conv_backward_filter", descriptor::filter_contractions);
}

}  // namespace kiln
