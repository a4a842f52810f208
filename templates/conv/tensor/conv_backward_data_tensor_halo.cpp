#include "conv/conv_contractions.h"
#include "conv/tensor/halo.h"

namespace kiln {

Algorithm conv_backward_data_tensor_halo() {
  return descriptor::halo_convolution("conv/tensor/conv_backward_data_tensor_halo.cu", "conv_backward_data",
                                      descriptor::data_products);
}

}  // namespace kiln
