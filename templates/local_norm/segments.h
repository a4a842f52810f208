// The descriptors of the kernels of local normalisations whose threads take neighbours along the axis of the window.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// NAME_segments of the operation NAME.
Algorithm local_norm_segments(const std::string& operation);

}  // namespace kiln::descriptor
