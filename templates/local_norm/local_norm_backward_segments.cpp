#include "local_norm/segments.h"

namespace kiln {

Algorithm local_norm_backward_segments() {
  return descriptor::local_norm_segments("local_norm_backward");
}

}  // namespace kiln
