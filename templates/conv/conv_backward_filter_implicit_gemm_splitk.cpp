#include "conv/split.h"

namespace kiln {

Algorithm conv_backward_filter_implicit_gemm_splitk() {
  return descriptor::split_convolution("conv_backward_filter_implicit_gemm_splitk", "conv_backward_filter",
                                       {16, 4, 2, 8, 32, 64, 128, 256});
}

}  // namespace kiln
