// Activations of the C API as the C++ API has them.
#pragma once

#include "kiln/activation.h"
#include "kiln/kiln.h"

namespace kiln::capi {

/// Options that `given` holds; for NULL relu. Throws Error(invalid_argument) for an unknown size, mode or flag.
ActivationOptions activation_options_of(const kiln_activation_options* given, const char* function);

}  // namespace kiln::capi
