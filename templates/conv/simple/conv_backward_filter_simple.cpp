#include "conv/simple/simple.h"

namespace kiln {

Algorithm conv_backward_filter_simple() {
  return descriptor::simple_backward_filter("conv/simple/conv_backward_filter_simple.cu", "conv_backward_filter");
}

}  // namespace kiln
