#include "attention/wide_forward.h"

namespace kiln {

Algorithm attention_wide_tensor() {
  return describe_attention_wide(descriptor::AttentionUnits::tensor_cores, "attention_wide_tensor",
                                 "attention/attention_wide_tensor.cu");
}

}  // namespace kiln
