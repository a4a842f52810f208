// Limits on the time that code under test takes, on a machine that is busy and in a build that is slow.
#pragma once

#include <ctime>

namespace kiln::testing_support {

/// Seconds that processors spent on this process. Unlike a clock, it does not count those of other processes.
inline double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// A limit in seconds in this build: a sanitizer makes code slower by the factor KILN_TEST_TIMEOUT_SCALE, which CTest's
/// limits have too. `seconds`: the limit in a release build.
double limit_in_this_build(double seconds);

}  // namespace kiln::testing_support
