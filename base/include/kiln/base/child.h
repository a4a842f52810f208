// Child processes of an application that may do anything with its signals, descriptors and children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kiln/base/file_descriptor.h"

namespace kiln {

/// A program to start. The descriptors stay the caller's; -1 leaves the child the one of this process.
struct ChildProgram {
  std::string path;
  std::vector<std::string> arguments{};
  int input = -1;
  int output = -1;
  int error = -1;
  /// In a process group of its own, which an interrupt from the terminal does not reach.
  bool own_group = false;
};

/// How a process ended.
struct ChildEnd {
  enum class Kind { exited, signalled, unknown };
  Kind kind = Kind::unknown;
  int number = 0;  ///< The exit code, or the signal.

  bool succeeded() const { return kind == Kind::exited && number == 0; }
  /// "exit code 3", "signal 11 (Segmentation fault)", or why it is not known.
  std::string text() const;
};

/// A running child process, killed and waited for with this object. Movable; not for several threads at once.
///
/// The child gets the three standard descriptors and no other, no blocked and no ignored signal, and the environment of
/// environment_of_children().
///
/// The application may ignore SIGCHLD, or a thread of it may wait for all children: then the end of this one is seen,
/// but not how it ended. Where the kernel has pidfds (Linux 5.4), no signal ever reaches another process that was given
/// the same number meanwhile.
class Child {
 public:
  /// Throws Error(io_error) with the program and the reason if it cannot be started.
  explicit Child(const ChildProgram& program);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// Its number: for messages.
  pid_t pid() const { return pid_; }

  /// Waits until it has ended, `limit` at most; nothing if it still runs. Once it has ended, the answer stays the same.
  std::optional<ChildEnd> wait_for(std::chrono::milliseconds limit);
  /// Ends it with SIGKILL, unless it has ended before, and waits for that. How it ended.
  ChildEnd kill();

 private:
  std::optional<ChildEnd> look(bool wait);

  pid_t pid_ = -1;
  FileDescriptor handle_;  // a pidfd; none where the kernel has none
  std::optional<ChildEnd> end_;
};

}  // namespace kiln
