#include "conv/gemm_tiling.h"

namespace kiln {

Algorithm local_conv_backward_data_implicit_gemm() {
  return descriptor::gemm_convolution("local_conv_backward_data_implicit_gemm", "local_conv_backward_data",
                                      descriptor::no_refusal);
}

}  // namespace kiln
