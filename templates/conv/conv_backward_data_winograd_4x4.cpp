#include "conv/winograd_steps.h"

namespace kiln {

Algorithm conv_backward_data_winograd_4x4() {
  return descriptor::winograd_convolution<4>("conv_backward_data_winograd_4x4", "conv_backward_data");
}

}  // namespace kiln
