// Tensors of the C API as those of the C++ API.
#pragma once

#include <string_view>

#include "kiln/kiln.h"
#include "kiln/tensor.h"

namespace kiln::capi {

/// Throws Error(invalid_argument) naming `function` and `name` for NULL, an unknown dtype, a rank, extents
/// and strides that no tensor has.
Tensor tensor_of(const kiln_tensor* given, std::string_view function, std::string_view name);

}  // namespace kiln::capi
