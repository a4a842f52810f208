// A program with this source has emulated devices that add matrix products as chips do.
#include <cstdlib>

#include "before_tests.h"

namespace kiln::bench::hardware_arithmetic {
namespace {

[[maybe_unused]] const bool is_set = [] {
  testing_support::before_tests().push_back([] { setenv("KILN_EMULATOR_TENSOR", "hardware", 1); });
  return true;
}();

}  // namespace
}  // namespace kiln::bench::hardware_arithmetic
