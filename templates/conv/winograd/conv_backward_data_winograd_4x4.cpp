#include "conv/conv_contractions.h"
#include "conv/winograd/winograd_steps.h"

namespace kiln {

Algorithm conv_backward_data_winograd_4x4() {
  return descriptor::winograd_convolution("conv/winograd/conv_backward_data_winograd_4x4.cu", "conv_backward_data", 4,
                                          descriptor::data_contractions);
}

}  // namespace kiln
