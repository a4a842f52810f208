#include "attention/wide_backward.h"

namespace kiln {

Algorithm attention_backward_wide_block() {
  return describe_attention_backward_wide(descriptor::AttentionUnits::lanes, "attention_backward_wide_block",
                                          "attention/attention_backward_wide_block.cu");
}

}  // namespace kiln
