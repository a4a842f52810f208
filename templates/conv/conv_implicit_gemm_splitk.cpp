#include "conv/depthwise.h"
#include "conv/split.h"

namespace kiln {

Algorithm conv_implicit_gemm_splitk() {
  return descriptor::split_convolution("conv_implicit_gemm_splitk", "conv_forward", {4, 2, 8, 16, 32},
                                       descriptor::refusal_of_depthwise);
}

}  // namespace kiln
