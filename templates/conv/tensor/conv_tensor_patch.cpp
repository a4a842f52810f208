#include "conv/conv_contractions.h"
#include "conv/tensor/patch_convolution.h"

namespace kiln {

Algorithm conv_tensor_patch() {
  return descriptor::patch_convolution("conv/tensor/conv_tensor_patch.cu", "conv_forward",
                                       descriptor::forward_contractions);
}

}  // namespace kiln
