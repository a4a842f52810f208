#include "conv/conv_contractions.h"
#include "conv/winograd/winograd_steps.h"

namespace kiln {

Algorithm conv_winograd_4x4() {
  return descriptor::winograd_convolution("conv/winograd/conv_winograd_4x4.cu", "conv_forward", 4,
                                          descriptor::forward_contractions);
}

}  // namespace kiln
