// System calls that a signal interrupts (EINTR), as a profiler's timer does in any application: what reads, writes or
// waits must go on. interrupted_calls.cpp takes the place of the C library's functions in the test program.
#pragma once

namespace kiln::testing_support {

/// While the object lives, every second read(), pread(), write() and waitid() is interrupted, the first one included.
/// One at a time.
class InterruptedCalls {
 public:
  InterruptedCalls();
  ~InterruptedCalls();
  InterruptedCalls(const InterruptedCalls&) = delete;
  InterruptedCalls& operator=(const InterruptedCalls&) = delete;

  /// Calls that were interrupted so far.
  static int count();
};

}  // namespace kiln::testing_support
