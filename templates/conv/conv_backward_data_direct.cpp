#include "conv/direct.h"

namespace kiln {

Algorithm conv_backward_data_direct() {
  return descriptor::direct_convolution("conv_backward_data_direct", "conv_backward_data");
}

}  // namespace kiln
