#include "grid_sample/grid_problem.h"

namespace kiln {

Algorithm grid_sample_backward_data_simple() {
  return descriptor::simple_grid_sample("grid_sample_backward_data");
}

}  // namespace kiln
