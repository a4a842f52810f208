#include "conv/depthwise_nhwc.h"

namespace kiln {

Algorithm conv_depthwise_nhwc() {
  return descriptor::depthwise_nhwc_convolution("conv_depthwise_nhwc", "conv_forward");
}

}  // namespace kiln
