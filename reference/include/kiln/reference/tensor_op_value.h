// What tensor_op computes of one element of each input, in double precision.
#pragma once

#include "kiln/generator/operations/tensor_ops.h"

namespace kiln::reference {

/// Of inputs that the mode does not read nothing matters.
double tensor_op_value(TensorOpMode mode, double a, double b, double c);

}  // namespace kiln::reference
