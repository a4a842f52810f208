// Threads that an application cancels (pthread_cancel) while they call the library.
#pragma once

#include <pthread.h>

namespace kiln {

/// Holds a cancellation of this thread back while the object lives. Cancellation unwinds the stack from any call that
/// waits or closes a file. Destructors make such calls, where unwinding ends the process, and a `catch (...)` would
/// take it for an exception.
class NoCancellation {
 public:
  NoCancellation() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace kiln
