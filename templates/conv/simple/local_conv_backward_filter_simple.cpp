#include "conv/simple/simple.h"

namespace kiln {

Algorithm local_conv_backward_filter_simple() {
  return descriptor::simple_backward_filter("conv/simple/local_conv_backward_filter_simple.cu",
                                            "local_conv_backward_filter");
}

}  // namespace kiln
