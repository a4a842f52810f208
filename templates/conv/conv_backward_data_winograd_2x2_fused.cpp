#include "conv/winograd_fused.h"

namespace kiln {

Algorithm conv_backward_data_winograd_2x2_fused() {
  return descriptor::fused_winograd_convolution<2>("conv_backward_data_winograd_2x2_fused", "conv_backward_data");
}

}  // namespace kiln
