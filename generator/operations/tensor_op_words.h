// Words of the modes of tensor_op and of its gradient.
#pragma once

#include <string>
#include <vector>

#include "kiln/generator/operations/tensor_ops.h"

namespace kiln {

TensorOpMode tensor_op_mode_of(const Request& request);
std::vector<std::string> tensor_op_mode_words();

}  // namespace kiln
