#include "conv/depthwise.h"
#include "conv/split.h"

namespace kiln {

Algorithm conv_backward_data_implicit_gemm_splitk() {
  return descriptor::split_convolution("conv_backward_data_implicit_gemm_splitk", "conv_backward_data",
                                       {4, 2, 8, 16, 32}, descriptor::refusal_of_depthwise);
}

}  // namespace kiln
