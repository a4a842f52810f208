#include "conv/depthwise_nchw.h"

namespace kiln {

Algorithm conv_backward_data_depthwise_nchw() {
  return descriptor::depthwise_nchw_convolution("conv_backward_data_depthwise_nchw", "conv_backward_data");
}

}  // namespace kiln
