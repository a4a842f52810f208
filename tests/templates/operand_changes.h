// Changes of single operands.
#pragma once

#include <optional>
#include <string>

#include "kiln/generator/request.h"

namespace kiln::testing_support {

/// The tensor with an element for each, its order kept, and every stride but the innermost odd: no two of its rows are
/// aligned alike.
TensorSpec with_odd_strides(TensorSpec spec);
/// Packed in the opposite order: its innermost dimension of several elements becomes the outermost one, and so on.
TensorSpec with_opposite_order(TensorSpec spec);
/// Its outermost dimension just so far apart that offsets need 64 bits. Nothing if it has one element.
std::optional<TensorSpec> with_wide_strides(TensorSpec spec);

/// `request` with another operand in the place of that one; nothing if its operation does not take it.
std::optional<Request> with_operand(Request request, const std::string& name, const TensorSpec& spec);

}  // namespace kiln::testing_support
