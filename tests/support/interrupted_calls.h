// System calls that fail where tests want it. A signal interrupts them (EINTR), as a profiler's timer does in any
// application: what reads, writes or waits must go on. Or the kernel has no pidfds. interrupted_calls.cpp takes the
// place of the C library's functions in the test program.
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

/// While the object lives, read() and pread() fail with `error`, as those of a disk or a server that is gone.
class FailingReads {
 public:
  explicit FailingReads(int error);
  ~FailingReads();
  FailingReads(const FailingReads&) = delete;
  FailingReads& operator=(const FailingReads&) = delete;
};

/// While the object lives, read() and pread() give one byte at a time, as they may.
class ShortReads {
 public:
  ShortReads();
  ~ShortReads();
  ShortReads(const ShortReads&) = delete;
  ShortReads& operator=(const ShortReads&) = delete;
};

/// While the object lives, read() gives three bytes at a time and makes the file longer by as many zeros, as another
/// process may that writes to it.
class GrowingFiles {
 public:
  GrowingFiles();
  ~GrowingFiles();
  GrowingFiles(const GrowingFiles&) = delete;
  GrowingFiles& operator=(const GrowingFiles&) = delete;
};

/// While the object lives, write() writes nothing and says so by 0; errno is what an earlier call left, EINTR.
class WritesOfNothing {
 public:
  WritesOfNothing();
  ~WritesOfNothing();
  WritesOfNothing(const WritesOfNothing&) = delete;
  WritesOfNothing& operator=(const WritesOfNothing&) = delete;
};

/// While the object lives, pidfd_open() fails with `error`. With 0 it works, but waitid() takes no pidfd, as in
/// Linux 5.3.
class NoPidfds {
 public:
  explicit NoPidfds(int error);
  ~NoPidfds();
  NoPidfds(const NoPidfds&) = delete;
  NoPidfds& operator=(const NoPidfds&) = delete;
};

}  // namespace kiln::testing_support
