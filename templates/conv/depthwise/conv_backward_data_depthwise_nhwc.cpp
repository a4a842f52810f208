#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_nhwc.h"

namespace kiln {

Algorithm conv_backward_data_depthwise_nhwc() {
  return descriptor::depthwise_nhwc_convolution("conv/depthwise/conv_backward_data_depthwise_nhwc.cu",
                                                "conv_backward_data", descriptor::data_contractions);
}

}  // namespace kiln
