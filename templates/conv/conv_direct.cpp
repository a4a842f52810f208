#include "conv/direct.h"

namespace kiln {

Algorithm conv_direct() {
  return descriptor::direct_convolution("conv_direct", "conv_forward");
}

}  // namespace kiln
