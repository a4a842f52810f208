// Architectures by name, where no device is at hand.
#pragma once

#include <string>

#include "kiln/device/nvrtc.h"
#include "kiln/generator/arch.h"

namespace kiln::cli {

/// `90` or `sm_90`. Throws Error(invalid_argument) if it is not written like that, Error(unsupported) with a list of
/// those that there are if it is none for which Kiln has kernels and `nvrtc`, where there is one, compiles.
Arch parse_arch(const std::string& text, const device::Nvrtc* nvrtc);

}  // namespace kiln::cli
