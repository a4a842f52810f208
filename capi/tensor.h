// Tensors of the C API as those of the C++ API.
#pragma once

#include <string>
#include <string_view>

#include "kiln/kiln.h"
#include "kiln/tensor.h"

namespace kiln::capi {

/// Constants of a set of types, in the order of kiln_dtype: "KILN_F32, KILN_F16".
std::string constants_of(DTypes dtypes);

/// Throws Error(invalid_argument) naming `function` and `name` for NULL, an unknown dtype, a rank, extents
/// and strides that no tensor has.
Tensor tensor_of(const kiln_tensor* given, std::string_view function, std::string_view name);

}  // namespace kiln::capi
