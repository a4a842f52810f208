// Parts shared by the definitions of element-wise operations.
#pragma once

#include <optional>
#include <string_view>

#include "kiln/generator/operation.h"

namespace kiln {

/// Refuses an operand of other than 1 to 5 dimensions.
void require_rank(const Request& request, std::string_view operand);

/// Each input once, the result once, and `flops` for each of its elements. An input whose elements repeat (extents of 1
/// beside longer ones of the result) is read once.
Work pointwise_work(const Request& request, double flops);

/// Base of operations that make each element of y from one of x, with the same extents; without attributes that need
/// completing.
class ElementwiseOperation : public Operation {
 public:
  void complete_attributes(Request& request) const final;
  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const final;
  void validate(const Request& request) const override;
  Work work(const Request& request) const final;
};

}  // namespace kiln
