#include "contraction/tensor_product.h"
#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise.h"

namespace kiln {

Algorithm conv_tensor_staged_packed() {
  return descriptor::tensor_contraction("conv/tensor/conv_tensor_staged.cu", "conv_forward", descriptor::packed_forward,
                                        descriptor::Bring::staged, descriptor::refusal_of_depthwise,
                                        descriptor::packed_suffix);
}

}  // namespace kiln
