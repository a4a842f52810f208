// The descriptors of the kernels of local normalisations whose threads go along the axis of the window.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// NAME_columns of the operation NAME.
Algorithm local_norm_columns(const std::string& operation);

}  // namespace kiln::descriptor
