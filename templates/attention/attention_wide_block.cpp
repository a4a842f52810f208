#include "attention/wide_forward.h"

namespace kiln {

Algorithm attention_wide_block() {
  return describe_attention_wide(descriptor::AttentionUnits::lanes, "attention_wide_block",
                                 "attention/attention_wide_block.cu");
}

}  // namespace kiln
