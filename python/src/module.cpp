// kiln._kiln: what the package's modules are made on. Its names are not for users.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "arguments.h"
#include "context.h"
#include "errors.h"
#include "kiln/version.h"
#include "plan.h"
#include "without_gil.h"

NB_MODULE(_kiln, module) {
  namespace nb = nanobind;
  using namespace kiln::python;  // NOLINT(google-build-using-namespace): the module is these
  nb::set_leak_warnings(false);  // a program may end with a Context in a global
  translate_errors();
  watch_the_end(module);
  bind_arguments(module);
  bind_context(module);
  bind_plan(module);
  bind_calls(module);
  module.attr("version") = std::string(kiln::version());
}
