// Parts shared by the definitions of element-wise operations.
#pragma once

#include <optional>
#include <string_view>

#include "kiln/generator/operation.h"

namespace kiln {

/// Refuses an operand of other than 1 to 5 dimensions.
void require_rank(const Request& request, std::string_view operand);

/// Refuses an operand that is missing although it `is_read`, or given although it is not; `advice`: what to do.
void require_if_read(const Request& request, std::string_view operand, bool is_read, std::string_view advice);
/// Refuses an operand whose extents are not those of `whole`, which is named so, nor 1 where it repeats.
void require_extents_or_ones(const Request& request, std::string_view operand, std::string_view whole);

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
