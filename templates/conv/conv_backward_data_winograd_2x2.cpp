#include "conv/winograd_steps.h"

namespace kiln {

Algorithm conv_backward_data_winograd_2x2() {
  return descriptor::winograd_convolution<2>("conv_backward_data_winograd_2x2", "conv_backward_data");
}

}  // namespace kiln
