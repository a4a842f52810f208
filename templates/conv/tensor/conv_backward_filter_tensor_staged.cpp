#include "contraction/tensor_product.h"
#include "conv/conv_contractions.h"

namespace kiln {

Algorithm conv_backward_filter_tensor_staged() {
  return descriptor::tensor_contraction("conv/tensor/conv_backward_filter_tensor_staged.cu", "conv_backward_filter",
                                        descriptor::filter_contractions, descriptor::Bring::staged);
}

}  // namespace kiln
