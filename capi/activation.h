// Activations of the C API as the C++ API has them.
#pragma once

#include "kiln/activation.h"
#include "kiln/kiln.h"

namespace kiln::capi {

/// What `given` says; for NULL relu. Throws Error(invalid_argument) for a size, mode or flag that there is not.
ActivationOptions activation_options_of(const kiln_activation_options* given, const char* function);

}  // namespace kiln::capi
