#include "time_limits.h"

namespace kiln::testing_support {

double limit_in_this_build(double seconds) {
  return seconds * KILN_TEST_TIMEOUT_SCALE;
}

}  // namespace kiln::testing_support
