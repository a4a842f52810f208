#include "contraction/tensor_product.h"
#include "conv/conv_contractions.h"

namespace kiln {

Algorithm conv_backward_filter_tensor_f16_sums() {
  return descriptor::f16_sums_contraction<descriptor::filter_contractions>(
      "conv/tensor/conv_backward_filter_tensor.cu", "conv_backward_filter", descriptor::Bring::copied);
}

}  // namespace kiln
