#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_nchw.h"

namespace kiln {

Algorithm conv_backward_data_depthwise_nchw() {
  return descriptor::depthwise_nchw_convolution("conv/depthwise/conv_backward_data_depthwise_nchw.cu",
                                                "conv_backward_data", descriptor::data_contractions);
}

}  // namespace kiln
