#include "conv/simple.h"

namespace kiln {

Algorithm conv_backward_data_simple() {
  return descriptor::simple_backward_data("conv_backward_data_simple", "conv_backward_data");
}

}  // namespace kiln
