#include "conv/winograd_fused.h"

namespace kiln {

Algorithm conv_backward_data_winograd_4x4_fused() {
  return descriptor::fused_winograd_convolution<4>("conv_backward_data_winograd_4x4_fused", "conv_backward_data");
}

}  // namespace kiln
