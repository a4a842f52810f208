#include "conv/gemm_tiling.h"

namespace kiln {

Algorithm gemm_tiled() {
  return descriptor::gemm_convolution("gemm_tiled", "gemm", descriptor::no_refusal);
}

}  // namespace kiln
