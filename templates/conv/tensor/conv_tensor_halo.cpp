#include "conv/conv_contractions.h"
#include "conv/tensor/halo.h"

namespace kiln {

Algorithm conv_tensor_halo() {
  return descriptor::halo_convolution("conv/tensor/conv_tensor_halo.cu", "conv_forward", descriptor::forward_products);
}

}  // namespace kiln
