#include "conv/simple.h"

namespace kiln {

Algorithm local_conv_backward_filter_simple() {
  return descriptor::simple_backward_filter("local_conv_backward_filter_simple", "local_conv_backward_filter");
}

}  // namespace kiln
