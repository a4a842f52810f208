// The descriptors of the kernels of local normalisations whose blocks make a tile in shared memory.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// NAME_tile of the operation NAME.
Algorithm local_norm_tile(const std::string& operation);

}  // namespace kiln::descriptor
