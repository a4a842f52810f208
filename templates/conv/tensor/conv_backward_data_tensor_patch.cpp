#include "conv/conv_contractions.h"
#include "conv/tensor/patch_convolution.h"

namespace kiln {

Algorithm conv_backward_data_tensor_patch() {
  return descriptor::patch_convolution("conv/tensor/conv_backward_data_tensor_patch.cu", "conv_backward_data",
                                       descriptor::data_products);
}

}  // namespace kiln
