// Element-wise operations of one, two or three inputs.
#pragma once

#include <optional>

#include "kiln/tensor_ops.h"

namespace kiln::capi {

/// kiln::tensor_op() of the inputs that are given. Throws Error(invalid_argument) if the mode reads fewer or more.
void tensor_op(Context& context, TensorOpMode mode, const Tensor& a, const std::optional<Tensor>& b,
               const std::optional<Tensor>& c, const Tensor& y, const TensorOpOptions& options, Stream stream);

}  // namespace kiln::capi
