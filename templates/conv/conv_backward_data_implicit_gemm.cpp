#include "conv/depthwise.h"
#include "conv/gemm_tiling.h"

namespace kiln {

Algorithm conv_backward_data_implicit_gemm() {
  return descriptor::gemm_convolution("conv_backward_data_implicit_gemm", "conv_backward_data",
                                      descriptor::refusal_of_depthwise);
}

}  // namespace kiln
