#include "conv/simple.h"

namespace kiln {

Algorithm local_conv_backward_data_simple() {
  return descriptor::simple_backward_data("local_conv_backward_data_simple", "local_conv_backward_data");
}

}  // namespace kiln
