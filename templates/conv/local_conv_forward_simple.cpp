#include "conv/simple.h"

namespace kiln {

Algorithm local_conv_forward_simple() {
  return descriptor::simple_convolution("local_conv_forward_simple", "local_conv_forward");
}

}  // namespace kiln
