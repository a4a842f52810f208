#include "conv/gemm_tiling.h"

namespace kiln {

Algorithm conv_backward_filter_implicit_gemm() {
  return descriptor::gemm_convolution("conv_backward_filter_implicit_gemm", "conv_backward_filter",
                                      descriptor::no_refusal);
}

}  // namespace kiln
