#include "conv/winograd_steps.h"

namespace kiln {

Algorithm conv_winograd_4x4() {
  return descriptor::winograd_convolution<4>("conv_winograd_4x4", "conv_forward");
}

}  // namespace kiln
