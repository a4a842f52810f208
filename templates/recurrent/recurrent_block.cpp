#include "recurrent/team.h"

namespace kiln {

Algorithm recurrent_block() {
  return descriptor::recurrent_teams("recurrent_block", "recurrent_forward");
}

}  // namespace kiln
