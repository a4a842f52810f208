// kiln::Error as exceptions of Python.
#pragma once

namespace kiln::python {

/// From now on an Error that leaves a function of this module is raised as what kiln.errors makes of it.
void translate_errors();

}  // namespace kiln::python
