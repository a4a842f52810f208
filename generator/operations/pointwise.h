// What the definitions of element-wise operations share.
#pragma once

#include <string_view>

#include "kiln/generator/operation.h"

namespace kiln {

/// Refuses an operand of other than 1 to 5 dimensions.
void require_rank(const Request& request, std::string_view operand);

/// Each input once, the result once, and `flops` for each of its elements. An input whose elements repeat (extents of 1
/// beside longer ones of the result) is read once.
Work pointwise_work(const Request& request, double flops);

}  // namespace kiln
