// The kernels of cross entropy and of its gradient for rows that stand side by side.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// OPERATION_strided of loss/OPERATION_strided.cu: a thread takes a row, neighbouring threads neighbouring rows.
Algorithm strided_cross_entropy(const std::string& operation);

}  // namespace kiln::descriptor
