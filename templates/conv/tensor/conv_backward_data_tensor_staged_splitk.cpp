#include "contraction/tensor_product.h"
#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise.h"

namespace kiln {

Algorithm conv_backward_data_tensor_staged_splitk() {
  return descriptor::split_tensor_contraction(
      "conv/tensor/conv_backward_data_tensor_staged_splitk.cu", "conv_backward_data", descriptor::data_products,
      descriptor::Bring::staged, {4, 2, 3, 6, 8, 12, 16, 32}, descriptor::refusal_of_depthwise);
}

}  // namespace kiln
