#include "attention/wide_backward.h"

namespace kiln {

Algorithm attention_backward_wide_tensor() {
  return describe_attention_backward_wide(descriptor::AttentionUnits::tensor_cores, "attention_backward_wide_tensor",
                                          "attention/attention_backward_wide_tensor.cu");
}

}  // namespace kiln
