// Work without the GIL, up to the end of the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <type_traits>

#include "kiln/base/error.h"

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

/// Whether Ctrl-C, or a signal whose handler raises, came while this thread worked without the GIL. Only Python's main
/// thread learns of it. The exception is kept for without_gil().
bool is_interrupted();
/// With the GIL: raises it.
void raise_interruption();

/// Result of `work`, which is called without the GIL. Raises what is_interrupted() kept in place of the result, or of
/// the Error that `work` throws.
template <class Work>
std::invoke_result_t<const Work&> without_gil(const Work& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<const Work&>>) {
      {
        const WithoutGil scope;
        work();
      }
      raise_interruption();
    } else {
      auto result = [&] {
        const WithoutGil scope;
        return work();
      }();
      raise_interruption();
      return result;
    }
  } catch (const Error&) {
    raise_interruption();
    throw;
  }
}

/// Whether the interpreter ends, and this is another thread than the one that ends it: it must not ask for the GIL.
bool is_left_behind();

/// Has atexit tell of the interpreter's end. Call once.
void watch_the_end(nanobind::module_& module);

}  // namespace kiln::python
