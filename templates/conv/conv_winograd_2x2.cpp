#include "conv/winograd_steps.h"

namespace kiln {

Algorithm conv_winograd_2x2() {
  return descriptor::winograd_convolution<2>("conv_winograd_2x2", "conv_forward");
}

}  // namespace kiln
