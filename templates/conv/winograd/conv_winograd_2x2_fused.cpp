#include "conv/conv_contractions.h"
#include "conv/winograd/winograd_fused.h"

namespace kiln {

Algorithm conv_winograd_2x2_fused() {
  return descriptor::fused_winograd_convolution("conv/winograd/conv_winograd_2x2_fused.cu", "conv_forward", 2,
                                                descriptor::forward_contractions);
}

}  // namespace kiln
