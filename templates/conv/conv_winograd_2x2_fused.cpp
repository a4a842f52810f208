#include "conv/winograd_fused.h"

namespace kiln {

Algorithm conv_winograd_2x2_fused() {
  return descriptor::fused_winograd_convolution<2>("conv_winograd_2x2_fused", "conv_forward");
}

}  // namespace kiln
