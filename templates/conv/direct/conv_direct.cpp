#include "conv/conv_contractions.h"
#include "conv/direct/direct.h"

namespace kiln {

Algorithm conv_direct() {
  return descriptor::direct_convolution("conv/direct/conv_direct.cu", "conv_forward", descriptor::forward_products);
}

}  // namespace kiln
