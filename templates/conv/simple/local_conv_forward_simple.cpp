#include "conv/simple/simple.h"

namespace kiln {

Algorithm local_conv_forward_simple() {
  return descriptor::simple_convolution("conv/simple/local_conv_forward_simple.cu", "local_conv_forward");
}

}  // namespace kiln
