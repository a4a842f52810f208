#include "conv/conv_contractions.h"
#include "conv/winograd/winograd_steps.h"

namespace kiln {

Algorithm conv_winograd_2x2() {
  return descriptor::winograd_convolution("conv/winograd/conv_winograd_2x2.cu", "conv_forward", 2,
                                          descriptor::forward_contractions);
}

}  // namespace kiln
