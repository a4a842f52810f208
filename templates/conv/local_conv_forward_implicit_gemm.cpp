#include "conv/gemm_tiling.h"

namespace kiln {

Algorithm local_conv_forward_implicit_gemm() {
  return descriptor::gemm_convolution("local_conv_forward_implicit_gemm", "local_conv_forward", descriptor::no_refusal);
}

}  // namespace kiln
