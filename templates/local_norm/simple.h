// The descriptors of the trusted kernels of local normalisations.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// NAME_simple of the operation NAME: a thread an element.
Algorithm local_norm_simple(const std::string& operation);

}  // namespace kiln::descriptor
