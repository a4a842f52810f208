#include "kiln/generator/operations/softmax_forward.h"

#include "operations/operations.h"
#include "operations/softmax.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

class SoftmaxForwardOperation final : public SoftmaxOperation {
 public:
  std::string_view name() const override { return "softmax_forward"; }
  std::string_view summary() const override { return "softmax and log-softmax along any dimension"; }
  std::string short_form(const Request& request) const override { return softmax_words(request); }
  std::string_view prologue_operand() const override { return "x"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x", .role = Role::input, .extents = "1 to 5 dimensions", .dtypes = DTypes::floating_or_fp8},
        in_place({.name = "y",
                  .role = Role::output,
                  .extents = "as x",
                  .left_out = "dtype and layout of x",
                  .dtypes = DTypes::floating_or_fp8},
                 {"x"}),
    };
    return definitions;
  }

 private:
  double flops_per_element() const override { return 5; }  // max, subtract, exp, add, scale
};

}  // namespace

const Operation& softmax_forward_operation() {
  static const SoftmaxForwardOperation definition;
  return definition;
}

SoftmaxForward SoftmaxForward::of(const Request& request) {
  SoftmaxForward view;
  view.x = request.at("x");
  view.y = request.at("y");
  view.axis = request.ints("axis").front();
  view.mode = request.word("mode") == "log" ? SoftmaxMode::log : SoftmaxMode::accurate;
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request SoftmaxForward::request() const {
  Request request;
  request.operation = "softmax_forward";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = {{"axis", Ints{axis}}, {"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
