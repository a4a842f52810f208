#include "without_gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace kiln::python {
namespace {

std::atomic<bool> ends = false;
std::thread::id ending_thread;  // set before `ends`
std::atomic<int> at_work = 0;   // scopes of WithoutGil that threads are in, up to having the GIL again
thread_local int own_work = 0;  // those of this thread: callbacks may call Kiln again

// By atexit, with the GIL: waits for those that are at work. Throws for Ctrl-C, which ends the wait.
void begin_end() {
  ending_thread = std::this_thread::get_id();
  ends = true;
  while (at_work > 0) {
    PyThreadState* const thread = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(thread);
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

thread_local std::optional<nanobind::python_error> interruption;

void stay_if_left_behind() {
  if (!is_left_behind()) return;
  at_work -= own_work;
  while (true) ::pause();
}

}  // namespace

bool is_left_behind() {
  return ends && std::this_thread::get_id() != ending_thread;
}

bool is_interrupted() {
  if (interruption || is_left_behind()) return true;
  const nanobind::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) interruption.emplace();  // takes what was raised
  return interruption.has_value();
}

void raise_interruption() {
  if (!interruption) return;
  throw *std::exchange(interruption, std::nullopt);
}

WithoutGil::WithoutGil() {
  ++at_work;
  ++own_work;
  thread_ = PyEval_SaveThread();
  stay_if_left_behind();
}

WithoutGil::~WithoutGil() {
  stay_if_left_behind();
  PyEval_RestoreThread(thread_);
  --own_work;
  --at_work;
}

void watch_the_end(nanobind::module_& module) {
  // The child has none of the other threads. Its own may have forked in a callback, and then has scopes still to leave.
  pthread_atfork(nullptr, nullptr, [] { at_work = own_work; });
  module.def("_begin_end", &begin_end);
  nanobind::module_::import_("atexit").attr("register")(module.attr("_begin_end"));
}

}  // namespace kiln::python
