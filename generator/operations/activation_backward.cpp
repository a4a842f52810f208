#include <fmt/format.h>

#include "operations/activation.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class ActivationBackwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "activation_backward"; }
  std::string_view summary() const override { return "gradient of activation functions"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("gradient of {} {}", request.word("mode"), result_words(request));
  }
  std::string_view prologue_operand() const override { return "dy"; }
  const std::vector<ScalarDefinition>& scalars() const override { return activation_scalars(); }
  std::vector<ScalarRule> scalar_rules(const Request& request) const override {
    return activation_rules(activation_mode_of(request), request.find("y") != nullptr);
  }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dy",
         .left_out = "y has to be given",
         .summary = "what the function was applied to",
         .dtypes = DTypes::floating_or_fp8},
        {.name = "y",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dy",
         .left_out = "x has to be given",
         .summary = "what the function gave; not for every mode",
         .dtypes = DTypes::floating_or_fp8},
        {.name = "dy",
         .role = Role::input,
         .extents = "1 to 5 dimensions",
         .summary = "the gradient with respect to y",
         .dtypes = DTypes::floating_or_fp8},
        in_place({.name = "dx",
                  .role = Role::output,
                  .extents = "as dy",
                  .left_out = "dtype and layout of dy",
                  .dtypes = DTypes::floating_or_fp8},
                 {"x", "y", "dy"}),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"mode", std::string("relu"), Printing::always, activation_words(), "the function"},
    };
    return definitions;
  }

  void complete_attributes(Request&) const override {}

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* dy = request.find("dy");
    if (operand != "dx" || dy == nullptr) return std::nullopt;
    return laid_out_like(*dy, dy->extents);
  }

  void validate(const Request& request) const override {
    const TensorSpec *x = request.find("x"), *y = request.find("y"), &dy = request.at("dy");
    require_rank(request, "dy");
    if ((x == nullptr) == (y == nullptr)) {
      refuse(request, x == nullptr ? "both x and y are missing" : "both x and y are given",
             "the derivative is taken at x, or told from y");
    }
    if (y != nullptr && !has_derivative_from_y(activation_mode_of(request))) {
      refuse(request, fmt::format("the derivative of {} cannot be told from y", request.word("mode")), "give x");
    }
    require_extents(request, x != nullptr ? "x" : "y", x != nullptr ? *x : *y, dy.extents, "those of dy");
    require_extents(request, "dx", request.at("dx"), dy.extents, "those of dy");
  }

  Work work(const Request& request) const override { return pointwise_work(request, 2); }
};

}  // namespace

const Operation& activation_backward_operation() {
  static const ActivationBackwardOperation definition;
  return definition;
}

ActivationBackward ActivationBackward::of(const Request& request) {
  ActivationBackward view;
  if (const TensorSpec* x = request.find("x")) view.x = *x;
  if (const TensorSpec* y = request.find("y")) view.y = *y;
  view.dy = request.at("dy");
  view.dx = request.at("dx");
  view.mode = activation_mode_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request ActivationBackward::request() const {
  Request request;
  request.operation = "activation_backward";
  if (x) request.operands.push_back({"x", *x});
  if (y) request.operands.push_back({"y", *y});
  request.operands.push_back({"dy", dy});
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  request.attributes = {{"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
