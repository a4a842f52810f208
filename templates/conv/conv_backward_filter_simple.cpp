#include "conv/simple.h"

namespace kiln {

Algorithm conv_backward_filter_simple() {
  return descriptor::simple_backward_filter("conv_backward_filter_simple", "conv_backward_filter");
}

}  // namespace kiln
