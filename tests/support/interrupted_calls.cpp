#include "interrupted_calls.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <string>

namespace kiln::testing_support {
namespace {

std::atomic<bool> active{false};
std::atomic<int> calls{0};
std::atomic<int> read_error{0};
std::atomic<size_t> most_read{SIZE_MAX};
std::atomic<size_t> growth{0};
std::atomic<bool> writes_nothing{false};
std::atomic<bool> has_pidfds{true};
std::atomic<int> pidfd_error{0};
constexpr auto by_pidfd = static_cast<idtype_t>(3);  // P_PIDFD, which glibc 2.35 does not name

bool interrupts() {
  if (!active || calls++ % 2 != 0) return false;
  errno = EINTR;
  return true;
}

bool fails_to_read() {
  if (read_error == 0) return interrupts();
  errno = read_error;
  return true;
}

// Makes the file longer by the growth. False if that fails.
bool grow(int descriptor) {
  if (growth == 0) return true;
  struct stat info = {};
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return ::fstat(descriptor, &info) == 0 && ::truncate(path.c_str(), info.st_size + static_cast<off_t>(growth)) == 0;
}

}  // namespace

WritesOfNothing::WritesOfNothing() {
  writes_nothing = true;
}

WritesOfNothing::~WritesOfNothing() {
  writes_nothing = false;
}

ShortReads::ShortReads() {
  most_read = 1;
}

ShortReads::~ShortReads() {
  most_read = SIZE_MAX;
}

GrowingFiles::GrowingFiles() {
  most_read = growth = 3;
}

GrowingFiles::~GrowingFiles() {
  growth = 0;
  most_read = SIZE_MAX;
}

FailingReads::FailingReads(int error) {
  read_error = error;
}

FailingReads::~FailingReads() {
  read_error = 0;
}

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

NoPidfds::NoPidfds(int error) {
  pidfd_error = error;
  has_pidfds = false;
}

NoPidfds::~NoPidfds() {
  pidfd_error = 0;
  has_pidfds = true;
}

}  // namespace kiln::testing_support

extern "C" ssize_t read(int descriptor, void* bytes, size_t size) {
  if (!kiln::testing_support::grow(descriptor)) return -1;
  size = std::min<size_t>(size, kiln::testing_support::most_read);
  return kiln::testing_support::fails_to_read() ? -1 : ::syscall(SYS_read, descriptor, bytes, size);
}

extern "C" ssize_t pread(int descriptor, void* bytes, size_t size, off_t offset) {
  size = std::min<size_t>(size, kiln::testing_support::most_read);
  return kiln::testing_support::fails_to_read() ? -1 : ::syscall(SYS_pread64, descriptor, bytes, size, offset);
}

extern "C" ssize_t write(int descriptor, const void* bytes, size_t size) {
  if (kiln::testing_support::writes_nothing) {
    errno = EINTR;
    return 0;
  }
  return kiln::testing_support::interrupts() ? -1 : ::syscall(SYS_write, descriptor, bytes, size);
}

// No system call has more than six arguments.
extern "C" long syscall(long number, ...) {
  if (number == SYS_pidfd_open && kiln::testing_support::pidfd_error != 0) {
    errno = kiln::testing_support::pidfd_error;
    return -1;
  }
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  static auto* const real = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));
  return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

extern "C" int waitid(idtype_t kind, id_t id, siginfo_t* info, int options) {
  if (kind == kiln::testing_support::by_pidfd && !kiln::testing_support::has_pidfds) {
    errno = EINVAL;
    return -1;
  }
  return kiln::testing_support::interrupts()
             ? -1
             : static_cast<int>(::syscall(SYS_waitid, kind, id, info, options, nullptr));
}
