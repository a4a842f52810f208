#include "recurrent/team.h"

namespace kiln {

Algorithm recurrent_backward_block() {
  return descriptor::recurrent_teams("recurrent_backward_block", "recurrent_backward");
}

}  // namespace kiln
