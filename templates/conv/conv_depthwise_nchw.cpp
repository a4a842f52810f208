#include "conv/depthwise_nchw.h"

namespace kiln {

Algorithm conv_depthwise_nchw() {
  return descriptor::depthwise_nchw_convolution("conv_depthwise_nchw", "conv_forward");
}

}  // namespace kiln
