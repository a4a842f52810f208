// Modes of tensor_op and of its gradient, in their requests.
#pragma once

#include "kiln/generator/operations/tensor_ops.h"

namespace kiln {

TensorOpMode tensor_op_mode_of(const Request& request);

}  // namespace kiln
