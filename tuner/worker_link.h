// The session's end of one worker process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/base/child.h"
#include "kiln/base/file_descriptor.h"
#include "kiln/tuner/laboratory.h"
#include "message.h"

namespace kiln::tuner {

/// Outcome of a command: the answer, or how the worker failed on it. After a failure the worker is gone.
struct Answer {
  Message message;
  std::optional<Failure> failure;
};

/// A running worker and the one command that it may be at work on. The process is killed with this object.
class WorkerLink {
 public:
  /// Starts `program` with `arguments` in a process group of its own, so that an interrupt from the terminal reaches
  /// the session only. Throws Error(io_error) if it cannot be started.
  WorkerLink(const std::string& program, const std::vector<std::string>& arguments);
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  pid_t pid() const { return child_->pid(); }
  int descriptor() const { return socket_.get(); }

  /// Gives it a command, numbered in the field "serial" (which the answer must repeat), to be answered within
  /// `limit_seconds`. It must not be busy.
  void send(const Message& command, double limit_seconds);
  bool is_busy() const { return busy_; }

  /// Events to poll the descriptor for.
  short events() const;
  /// Seconds until the command's limit; 0 if it has passed.
  double seconds_left() const;
  /// Sends and receives what can be without waiting; the answer, if it is complete or cannot come any more: the worker
  /// died, sent garbage (anything but one answer that fits the command), or exceeded the limit. One that was killed by
  /// SIGKILL, which nobody here sent, counts as out of memory: that is how a system takes it back.
  std::optional<Answer> service();
  /// Ends the process in the middle of its command: the answer is that it timed out.
  Answer end();

 private:
  bool flush();
  bool receive(bool& ended);
  Answer fail(Outcome outcome, std::string what);

  FileDescriptor socket_;
  std::optional<Child> child_;
  nlohmann::json command_;  // the last
  uint64_t sent_ = 0;       // commands
  MessageReader reader_;
  std::string outbox_;
  bool busy_ = false;
  double limit_ = 0;
  double deadline_ = 0;  // on the steady clock, seconds
};

}  // namespace kiln::tuner
