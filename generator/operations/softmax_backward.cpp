#include "kiln/generator/operations/softmax_backward.h"

#include "operations/operations.h"
#include "operations/softmax.h"

namespace kiln {
namespace {

class SoftmaxBackwardOperation final : public SoftmaxOperation {
 public:
  std::string_view name() const override { return "softmax_backward"; }
  std::string_view summary() const override { return "gradient of softmax and log-softmax"; }
  std::string short_form(const Request& request) const override { return "gradient of " + softmax_words(request); }
  std::string_view prologue_operand() const override { return "dy"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "y",
         .role = Role::input,
         .extents = "1 to 5 dimensions",
         .summary = "the result of softmax_forward",
         .dtypes = DTypes::floating_or_fp8},
        {.name = "dy",
         .role = Role::input,
         .extents = "as y",
         .left_out = "dtype and layout of y",
         .summary = "the gradient with respect to y",
         .dtypes = DTypes::floating_or_fp8},
        in_place({.name = "dx",
                  .role = Role::output,
                  .extents = "as y",
                  .left_out = "dtype and layout of y",
                  .dtypes = DTypes::floating_or_fp8},
                 {"y", "dy"}),
    };
    return definitions;
  }

 private:
  double flops_per_element() const override { return 4; }  // a product, a sum, a difference, a product
};

}  // namespace

const Operation& softmax_backward_operation() {
  static const SoftmaxBackwardOperation definition;
  return definition;
}

SoftmaxBackward SoftmaxBackward::of(const Request& request) {
  SoftmaxBackward view;
  view.y = request.at("y");
  view.dy = request.at("dy");
  view.dx = request.at("dx");
  view.axis = request.ints("axis").front();
  view.mode = request.word("mode") == "log" ? SoftmaxMode::log : SoftmaxMode::accurate;
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request SoftmaxBackward::request() const {
  Request request;
  request.operation = "softmax_backward";
  request.operands = {{"y", y}};
  if (!dy.extents.empty()) request.operands.push_back({"dy", dy});
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  request.attributes = {{"axis", std::vector<int64_t>{axis}}, {"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
