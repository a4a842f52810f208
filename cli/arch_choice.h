// Architectures by name, where no device is at hand.
#pragma once

#include <string>

#include "kiln/generator/arch.h"

namespace kiln::cli {

/// `90` or `sm_90`. Throws Error(invalid_argument) if it is no architecture, Error(unsupported) if Kiln has no kernels
/// for it.
Arch parse_arch(const std::string& text);

}  // namespace kiln::cli
