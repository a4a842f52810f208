#include "contraction/tensor_product.h"
#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise.h"

namespace kiln {

Algorithm conv_tensor_persistent() {
  return descriptor::persistent_tensor_contraction("conv/tensor/conv_tensor_persistent.cu", "conv_forward",
                                                   descriptor::forward_products, descriptor::refusal_of_depthwise);
}

}  // namespace kiln
