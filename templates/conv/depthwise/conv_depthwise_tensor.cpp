#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_tensor.h"

namespace kiln {

Algorithm conv_depthwise_tensor() {
  return descriptor::depthwise_tensor_convolution("conv/depthwise/conv_depthwise_tensor.cu", "conv_forward",
                                                  descriptor::forward_contractions);
}

}  // namespace kiln
