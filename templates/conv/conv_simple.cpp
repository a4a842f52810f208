#include "conv/simple.h"

namespace kiln {

Algorithm conv_simple() {
  return descriptor::simple_convolution("conv_simple", "conv_forward");
}

}  // namespace kiln
