#include "errors.h"

#include <nanobind/nanobind.h>

#include <string>

#include "kiln/base/error.h"

namespace kiln::python {
namespace {

namespace nb = nanobind;

nb::str text(std::string_view view) {
  return nb::str(view.data(), view.size());
}

void raise(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object made =
        nb::module_::import_("kiln.errors")
            .attr("error_of")(text(to_string(error.code())), text(error.message()), text(error.hint()));
    PyErr_SetObject(made.type().ptr(), made.ptr());
  }
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator(&raise);
}

}  // namespace kiln::python
