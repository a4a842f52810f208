#include "contraction/simt_product.h"
#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise.h"

namespace kiln {

Algorithm conv_backward_data_implicit_gemm() {
  return descriptor::tiled_contraction("conv/implicit_gemm/conv_backward_data_implicit_gemm.cu", "conv_backward_data",
                                       descriptor::data_products, descriptor::refusal_of_depthwise);
}

}  // namespace kiln
