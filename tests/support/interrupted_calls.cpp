#include "interrupted_calls.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace kiln::testing_support {
namespace {

std::atomic<bool> active{false};
std::atomic<int> calls{0};

bool interrupts() {
  if (!active || calls++ % 2 != 0) return false;
  errno = EINTR;
  return true;
}

}  // namespace

InterruptedCalls::InterruptedCalls() {
  calls = 0;
  active = true;
}

InterruptedCalls::~InterruptedCalls() {
  active = false;
}

int InterruptedCalls::count() {
  return (calls + 1) / 2;
}

}  // namespace kiln::testing_support

extern "C" ssize_t read(int descriptor, void* bytes, size_t size) {
  return kiln::testing_support::interrupts() ? -1 : ::syscall(SYS_read, descriptor, bytes, size);
}

extern "C" ssize_t pread(int descriptor, void* bytes, size_t size, off_t offset) {
  return kiln::testing_support::interrupts() ? -1 : ::syscall(SYS_pread64, descriptor, bytes, size, offset);
}

extern "C" ssize_t write(int descriptor, const void* bytes, size_t size) {
  return kiln::testing_support::interrupts() ? -1 : ::syscall(SYS_write, descriptor, bytes, size);
}

extern "C" int waitid(idtype_t kind, id_t id, siginfo_t* info, int options) {
  return kiln::testing_support::interrupts()
             ? -1
             : static_cast<int>(::syscall(SYS_waitid, kind, id, info, options, nullptr));
}
