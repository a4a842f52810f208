#include "conv/conv_contractions.h"
#include "conv/direct/direct.h"

namespace kiln {

Algorithm conv_backward_data_direct() {
  return descriptor::direct_convolution("conv/direct/conv_backward_data_direct.cu", "conv_backward_data",
                                        descriptor::data_contractions);
}

}  // namespace kiln
