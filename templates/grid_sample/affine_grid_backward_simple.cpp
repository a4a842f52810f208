#include "grid_sample/affine_problem.h"

namespace kiln {

Algorithm affine_grid_backward_simple() {
  return descriptor::simple_affine_grid("affine_grid_backward");
}

}  // namespace kiln
