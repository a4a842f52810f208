// A host whose clock is wrong. skewed_clock.cpp takes the place of the C library's function in the test program.
#pragma once

#include <chrono>

namespace kiln::testing_support {

/// While the object lives, the time of day that the process reads is `ahead` of what it is. Times that the file system
/// gives to files are not. One at a time.
class SkewedClock {
 public:
  explicit SkewedClock(std::chrono::seconds ahead);
  ~SkewedClock();
  SkewedClock(const SkewedClock&) = delete;
  SkewedClock& operator=(const SkewedClock&) = delete;
};

}  // namespace kiln::testing_support
