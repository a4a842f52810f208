#include "local_norm/columns.h"

namespace kiln {

Algorithm local_norm_backward_columns() {
  return descriptor::local_norm_columns("local_norm_backward");
}

}  // namespace kiln
