#include "conv/conv_contractions.h"
#include "conv/depthwise/depthwise_windows.h"

namespace kiln {

Algorithm conv_depthwise_windows() {
  return descriptor::windows_convolution("conv/depthwise/conv_depthwise_windows.cu", "conv_forward",
                                         descriptor::forward_contractions);
}

}  // namespace kiln
