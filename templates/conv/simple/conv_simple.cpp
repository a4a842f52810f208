#include "conv/simple/simple.h"

namespace kiln {

Algorithm conv_simple() {
  return descriptor::simple_convolution("conv/simple/conv_simple.cu", "conv_forward");
}

}  // namespace kiln
