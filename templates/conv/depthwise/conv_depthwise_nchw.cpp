#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_nchw.h"

namespace kiln {

Algorithm conv_depthwise_nchw() {
  return descriptor::depthwise_nchw_convolution("conv/depthwise/conv_depthwise_nchw.cu", "conv_forward",
                                                descriptor::forward_contractions);
}

}  // namespace kiln
