#include "loss/strided.h"

namespace kiln {

Algorithm cross_entropy_forward_strided() {
  return descriptor::strided_cross_entropy("cross_entropy_forward");
}

}  // namespace kiln
