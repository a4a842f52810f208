#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_windows.h"

namespace kiln {

Algorithm conv_backward_filter_depthwise_windows() {
  return descriptor::windows_convolution("conv/depthwise/conv_backward_filter_depthwise_windows.cu",
                                         "conv_backward_filter", descriptor::filter_contractions);
}

}  // namespace kiln
