#include "conv/split.h"

namespace kiln {

Algorithm gemm_splitk() {
  return descriptor::split_convolution("gemm_splitk", "gemm", {8, 4, 2, 16, 32, 64, 128});
}

}  // namespace kiln
