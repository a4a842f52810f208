#include "loss/ctc.h"

namespace kiln {

Algorithm ctc_loss_forward_simple() {
  return descriptor::simple_ctc_loss("ctc_loss_forward");
}

}  // namespace kiln
