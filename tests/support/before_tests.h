// Work between the registration of all tests and their run.
#pragma once

#include <vector>

namespace kiln::testing_support {

/// Functions that the main program of tests calls, in this order, before it runs them. Sources add theirs while the
/// program starts.
inline std::vector<void (*)()>& before_tests() {
  static std::vector<void (*)()> functions;
  return functions;
}

}  // namespace kiln::testing_support
