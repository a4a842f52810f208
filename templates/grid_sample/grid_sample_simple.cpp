#include "grid_sample/grid_problem.h"

namespace kiln {

Algorithm grid_sample_simple() {
  return descriptor::simple_grid_sample("grid_sample");
}

}  // namespace kiln
