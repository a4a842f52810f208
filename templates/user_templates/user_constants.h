// A request as user templates see it: constants by name, for kernels and for the expressions of descriptors.
#pragma once

#include "kiln/generator/operation.h"
#include "kiln/generator/specialise.h"

namespace kiln {

/// docs/user-code.md lists them.
Prelude user_constants(const Request& request);
/// With the same names, whatever the values: those of an operation, before there is a request.
Prelude user_constants_of_any(const Operation& operation);

}  // namespace kiln
