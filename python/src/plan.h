// Plans and calls by name.
#pragma once

#include <nanobind/nanobind.h>

namespace kiln::python {

void bind_plan(nanobind::module_& module);
void bind_calls(nanobind::module_& module);

}  // namespace kiln::python
