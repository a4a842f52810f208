// Parts shared by softmax and its gradient: an axis, a mode, operands of equal extents.
#pragma once

#include <string>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/softmax_forward.h"

namespace kiln {

class SoftmaxOperation : public Operation {
 public:
  const std::vector<AttributeDefinition>& attributes() const final;
  bool has_order_of_sums() const final { return true; }
  std::optional<std::string> why_images_mix(const Request& request) const final;
  size_t batch_dimensions(const Request& request, std::string_view operand) const final;
  void complete_attributes(Request& request) const final;
  /// All operands are as the first.
  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const final;
  void validate(const Request& request) const final;
  Work work(const Request& request) const final;

 protected:
  /// "log-softmax 4x10 f16, axis 1".
  static std::string softmax_words(const Request& request);

 private:
  /// Arithmetic for each element of the result.
  virtual double flops_per_element() const = 0;
};

}  // namespace kiln
