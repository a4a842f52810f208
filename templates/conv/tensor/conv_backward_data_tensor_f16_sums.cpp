#include "contraction/tensor_product.h"
#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise.h"

namespace kiln {

Algorithm conv_backward_data_tensor_f16_sums() {
  return descriptor::f16_sums_contraction<descriptor::data_products>("conv/tensor/conv_backward_data_tensor.cu",
                                                                     "conv_backward_data", descriptor::Bring::copied,
                                                                     descriptor::refusal_of_depthwise);
}

}  // namespace kiln
