// Work without the GIL, up to the end of the interpreter.
#pragma once

#include <nanobind/nanobind.h>

namespace kiln::python {

/// Gives up the GIL until the end of its scope.
///
/// The interpreter does not end before that, whatever thread this is: what Kiln works on would end under it. A daemon
/// thread stays here for good then, as it does in Python from 3.14 on. Before, Python ends a thread that asks for the
/// GIL while the interpreter ends, and as that unwinds C++, it is the end of the process.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_;
};

/// Whether the interpreter ends, and this is another thread than the one that ends it: it must not ask for the GIL.
bool is_left_behind();

/// Has atexit tell of the interpreter's end. Call once.
void watch_the_end(nanobind::module_& module);

}  // namespace kiln::python
