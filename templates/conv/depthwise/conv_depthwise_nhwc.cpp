#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_nhwc.h"

namespace kiln {

Algorithm conv_depthwise_nhwc() {
  return descriptor::depthwise_nhwc_convolution("conv/depthwise/conv_depthwise_nhwc.cu", "conv_forward",
                                                descriptor::forward_contractions);
}

}  // namespace kiln
