#include <fmt/format.h>

#include "operations/activation.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class ActivationForwardOperation final : public ElementwiseOperation {
 public:
  std::string_view name() const override { return "activation_forward"; }
  std::string_view summary() const override { return "activation functions: relu, sigmoid, tanh, gelu, ..."; }
  std::string short_form(const Request& request) const override {
    return fmt::format("{} {}", request.word("mode"), result_words(request));
  }
  std::string_view prologue_operand() const override { return "x"; }
  const std::vector<ScalarDefinition>& scalars() const override { return activation_scalars(); }
  std::vector<ScalarRule> scalar_rules(const Request& request) const override {
    return activation_rules(activation_mode_of(request), false);
  }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .extents = "1 to 5 dimensions",
         .summary = "integers with mode=identity only",
         .dtypes = DTypes::any},
        in_place({.name = "y",
                  .role = Role::output,
                  .extents = "as x",
                  .left_out = "dtype and layout of x",
                  .summary = "integers with mode=identity only",
                  .dtypes = DTypes::any},
                 {"x"}),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"mode", std::string("relu"), Printing::always, activation_words(), "the function"},
    };
    return definitions;
  }

  // A function of integers is the user's own to define.
  void validate(const Request& request) const override {
    ElementwiseOperation::validate(request);
    if (activation_mode_of(request) == ActivationMode::identity) return;
    for (const char* name : {"x", "y"}) {
      const DType dtype = request.at(name).dtype;
      if (is_floating(dtype)) continue;
      refuse(request, fmt::format("{} is {}", name, to_string(dtype)),
             fmt::format("it may be {}; integers with mode=identity", to_string(DTypes::floating_or_fp8)));
    }
  }
};

}  // namespace

const Operation& activation_forward_operation() {
  static const ActivationForwardOperation definition;
  return definition;
}

ActivationForward ActivationForward::of(const Request& request) {
  return {.x = request.at("x"),
          .y = request.at("y"),
          .mode = activation_mode_of(request),
          .blend = request.blend,
          .dynamic_batch = request.dynamic_batch};
}

Request ActivationForward::request() const {
  Request request;
  request.operation = "activation_forward";
  request.operands = {{"x", x}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = {{"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
