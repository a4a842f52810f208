#include "local_norm/segments.h"

namespace kiln {

Algorithm local_norm_forward_segments() {
  return descriptor::local_norm_segments("local_norm_forward");
}

}  // namespace kiln
