// How a command that tunes is told to end early.
#pragma once

#include <csignal>

#include "exit_codes.h"
#include "machine_tuning.h"

namespace kiln::cli {

/// Catches SIGINT (Ctrl-C) and SIGTERM (what a job system sends) for a scope. The first of them lets the session at
/// work finish its running task and keep it. Without a session it ends the program at once, with the signal's exit
/// code, also in a container, to whose first process a signal does nothing by default. A second Ctrl-C ends the program
/// at once; a second SIGTERM does nothing, because job systems send it to a program and again to its parents, which
/// pass it on. At most one exists at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// For as long as it lives, a signal stops this session. It must outlive it.
  class Session {
   public:
    explicit Session(MachineTuning& session);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
  };

  /// The exit code of the signal that stopped a session; `success` if none did.
  ExitCode code() const;

 private:
  struct sigaction interrupt_ {
  }, terminate_{};  // what was done with them before
};

}  // namespace kiln::cli
