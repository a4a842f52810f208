#include "without_gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace kiln::python {
namespace {

std::atomic<bool> ends = false;
std::thread::id ending_thread;  // set before `ends`
std::atomic<int> returning = 0;  // threads that ask for the GIL, or are about to

// By atexit, with the GIL. Who asks for the GIL already gets it; who comes later is left behind.
void begin_end() {
  ending_thread = std::this_thread::get_id();
  ends = true;
  PyThreadState* const thread = PyEval_SaveThread();
  while (returning > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(thread);
}

}  // namespace

bool is_left_behind() {
  return ends && std::this_thread::get_id() != ending_thread;
}

WithoutGil::~WithoutGil() {
  ++returning;
  if (is_left_behind()) {
    --returning;
    while (true) ::pause();
  }
  PyEval_RestoreThread(thread_);
  --returning;
}

void watch_the_end(nanobind::module_& module) {
  pthread_atfork(nullptr, nullptr, [] { returning = 0; });  // the child has none of the other threads
  module.def("_begin_end", &begin_end);
  nanobind::module_::import_("atexit").attr("register")(module.attr("_begin_end"));
}

}  // namespace kiln::python
