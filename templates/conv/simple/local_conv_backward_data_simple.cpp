#include "conv/simple/simple.h"

namespace kiln {

Algorithm local_conv_backward_data_simple() {
  return descriptor::simple_backward_data("conv/simple/local_conv_backward_data_simple.cu", "local_conv_backward_data");
}

}  // namespace kiln
