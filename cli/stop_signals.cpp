#include "stop_signals.h"

#include <unistd.h>

#include <atomic>

namespace kiln::cli {
namespace {

// A signal handler can reach nothing else.
std::atomic<MachineTuning*> session_at_work = nullptr;
std::atomic<int> stopped_by = 0;
static_assert(std::atomic<MachineTuning*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

int code_of(int signal) {
  return signal == SIGTERM ? terminated : interrupted;
}

extern "C" void stop_session(int signal) {
  MachineTuning* const session = session_at_work.load();
  int none = 0;
  const bool first = stopped_by.compare_exchange_strong(none, signal);
  if (first && session != nullptr) {
    session->stop();
  } else if (first || signal == SIGINT) {
    ::_exit(code_of(signal));
  }
}

}  // namespace

StopSignals::StopSignals() {
  stopped_by = 0;
  struct sigaction action {};
  action.sa_handler = stop_session;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

StopSignals::Session::Session(MachineTuning& session) {
  session_at_work = &session;
}

StopSignals::Session::~Session() {
  session_at_work = nullptr;
}

ExitCode StopSignals::code() const {
  const int signal = stopped_by;
  return signal == 0 ? success : static_cast<ExitCode>(code_of(signal));
}

}  // namespace kiln::cli
