#include "conv/simple/simple.h"

namespace kiln {

Algorithm conv_backward_data_simple() {
  return descriptor::simple_backward_data("conv/simple/conv_backward_data_simple.cu", "conv_backward_data");
}

}  // namespace kiln
