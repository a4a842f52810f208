#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_tensor.h"

namespace kiln {

Algorithm conv_backward_data_depthwise_tensor() {
  return descriptor::depthwise_tensor_convolution("conv/depthwise/conv_backward_data_depthwise_tensor.cu",
                                                  "conv_backward_data", descriptor::data_contractions);
}

}  // namespace kiln
