#include "skewed_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

namespace kiln::testing_support {
namespace {

std::atomic<long> seconds_ahead{0};

}  // namespace

SkewedClock::SkewedClock(std::chrono::seconds ahead) {
  seconds_ahead = static_cast<long>(ahead.count());
}

SkewedClock::~SkewedClock() {
  seconds_ahead = 0;
}

}  // namespace kiln::testing_support

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  const long failed = ::syscall(SYS_clock_gettime, clock, time);
  if (failed == 0 && clock == CLOCK_REALTIME) time->tv_sec += kiln::testing_support::seconds_ahead;
  return static_cast<int>(failed);
}
