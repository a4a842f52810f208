// The check's own kernels, embedded: kernels/NAME.cu.
#pragma once

#include <string_view>

namespace kiln::checking {

extern const std::string_view user_bounds_kernel, user_prologue_kernel;

}  // namespace kiln::checking
