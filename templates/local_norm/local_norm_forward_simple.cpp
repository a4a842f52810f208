#include "local_norm/simple.h"

namespace kiln {

Algorithm local_norm_forward_simple() {
  return descriptor::local_norm_simple("local_norm_forward");
}

}  // namespace kiln
