// Function of tensor_op, from one element of each input, in double precision.
#pragma once

#include "kiln/generator/operations/tensor_ops.h"

namespace kiln::reference {

/// Result for three elements; inputs that the mode does not read may hold anything.
double tensor_op_value(TensorOpMode mode, double a, double b, double c);

}  // namespace kiln::reference
