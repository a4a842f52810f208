#include "loss/simple.h"

namespace kiln {

Algorithm cross_entropy_backward_simple() {
  return descriptor::simple_cross_entropy("cross_entropy_backward");
}

}  // namespace kiln
