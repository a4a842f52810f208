#include "loss/simple.h"

namespace kiln {

Algorithm cross_entropy_forward_simple() {
  return descriptor::simple_cross_entropy("cross_entropy_forward");
}

}  // namespace kiln
