#include "conv/depthwise/depthwise_nhwc.h"
#include "conv/passes.h"

namespace kiln {

Algorithm conv_depthwise_nhwc() {
  return descriptor::depthwise_nhwc_convolution("conv/depthwise/conv_depthwise_nhwc.cu", "conv_forward",
                                                descriptor::forward_contractions);
}

}  // namespace kiln
