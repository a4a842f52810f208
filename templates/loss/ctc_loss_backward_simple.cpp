#include "loss/ctc.h"

namespace kiln {

Algorithm ctc_loss_backward_simple() {
  return descriptor::simple_ctc_loss("ctc_loss_backward");
}

}  // namespace kiln
