#include "conv/depthwise_nhwc.h"

namespace kiln {

Algorithm conv_backward_data_depthwise_nhwc() {
  return descriptor::depthwise_nhwc_convolution("conv_backward_data_depthwise_nhwc", "conv_backward_data");
}

}  // namespace kiln
