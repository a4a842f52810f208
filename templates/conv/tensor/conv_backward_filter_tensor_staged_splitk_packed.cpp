#include "contraction/tensor_product.h"
#include "conv/conv_contractions.h"

namespace kiln {

Algorithm conv_backward_filter_tensor_staged_splitk_packed() {
  return descriptor::split_tensor_contraction(
      "conv/tensor/conv_backward_filter_tensor_staged_splitk.cu", "conv_backward_filter", descriptor::packed_filter,
      descriptor::Bring::staged, {16, 4, 2, 3, 6, 8, 12, 24, 32, 48, 64, 96, 128, 256}, descriptor::no_refusal,
      descriptor::packed_suffix);
}

}  // namespace kiln
