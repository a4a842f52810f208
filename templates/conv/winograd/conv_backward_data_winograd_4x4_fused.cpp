#include "conv/conv_contractions.h"
#include "conv/winograd/winograd_fused.h"

namespace kiln {

Algorithm conv_backward_data_winograd_4x4_fused() {
  return descriptor::fused_winograd_convolution("conv/winograd/conv_backward_data_winograd_4x4_fused.cu",
                                                "conv_backward_data", 4, descriptor::data_contractions);
}

}  // namespace kiln
