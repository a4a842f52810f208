#include "local_norm/tile.h"

namespace kiln {

Algorithm local_norm_forward_tile() {
  return descriptor::local_norm_tile("local_norm_forward");
}

}  // namespace kiln
