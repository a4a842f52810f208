// The trusted kernels of cross entropy and of its gradient.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// OPERATION_simple of loss/OPERATION_simple.cu: a thread takes a row.
Algorithm simple_cross_entropy(const std::string& operation);

}  // namespace kiln::descriptor
