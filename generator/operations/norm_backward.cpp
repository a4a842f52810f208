#include <fmt/format.h>

#include <utility>

#include "operations/activation.h"
#include "operations/axes.h"
#include "operations/blends.h"
#include "operations/norm.h"
#include "operations/operations.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

OperandDefinition gradient_of_parameter(std::string name) {
  return norm_parameter({.name = std::move(name),
                         .role = Role::output,
                         .extents = "as w",
                         .left_out = "not computed",
                         .summary = "not with n=?"});
}

class NormBackwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "norm_backward"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("gradient of {}{}{}", norm_mode_words(request), norm_words(request, "dy"),
                       norm_epilogue_words(request));
  }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "dy"; }
  std::string_view summary() const override { return "gradients of normalisations"; }

  int most_dimensions() const override { return norm_dimensions; }
  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy", .role = Role::input, .extents = "1 to 6 dimensions"},
        {.name = "x",
         .role = Role::input,
         .extents = "as dy",
         .left_out = "dtype and layout of dy",
         .summary = "the forward's"},
        norm_parameter({.name = "w",
                        .role = Role::input,
                        .extents = "in each dimension dy's or 1",
                        .left_out = "it is 1",
                        .summary = "the forward's"}),
        norm_parameter({.name = "b",
                        .role = Role::input,
                        .extents = "as w",
                        .left_out = "the forward had none",
                        .summary = "the forward's, with an activation only"}),
        {.name = "mean",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dy, with 1 along the axes",
         .left_out = "without gaps",
         .summary = "what the forward saved; not for mode=rms",
         .dtypes = DTypes::only_f32},
        {.name = "inv_deviation",
         .role = Role::input,
         .extents = "as mean",
         .left_out = "without gaps",
         .summary = "what the forward saved",
         .dtypes = DTypes::only_f32},
        {.name = "y",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dy",
         .left_out = "every element of dy counts",
         .summary = "the forward's result, if the forward ended in relu: dy counts where y > 0, and as 0 elsewhere"},
        {.name = "residual",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dy",
         .left_out = "the forward had none",
         .summary = "the forward's, with an activation only"},
        in_place({.name = "dx", .role = Role::output, .extents = "as dy", .left_out = "dtype and layout of dy"},
                 {"dy", "x"}),
        gradient_of_parameter("dw"),
        gradient_of_parameter("db"),
        in_place({.name = "dresidual",
                  .role = Role::output,
                  .printing = Printing::when_set,
                  .extents = "as dy",
                  .left_out = "not computed",
                  .summary = "dy where it counts, else 0"},
                 {"dy"}),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const auto definitions = with_classes(
        {axes_attribute({-1}, norm_axes), norm_mode_attribute(), fused_activation_attribute()}, further_blends());
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const auto definitions = with_activation_scalars(with_values({}, further_blends()));
    return definitions;
  }

  std::vector<ScalarRule> scalar_rules(const Request& request) const override {
    return with_activation_rules({}, request);
  }

  const std::vector<FurtherBlend>& further_blends() const override {
    static const std::vector<FurtherBlend> blends = {{"parameter", {"dw", "db"}}, {"dresidual", {"dresidual"}}};
    return blends;
  }

  void complete_attributes(Request& request) const override { complete_axes(request, "dy"); }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* dy = request.find("dy");
    if (dy == nullptr) return std::nullopt;
    if (operand == "x" || operand == "dx") return laid_out_like(*dy, dy->extents);
    if (operand == "inv_deviation") return implied_statistics(request, "dy");
    if (operand == "mean" && norm_mode_of(request) == NormMode::standard) return implied_statistics(request, "dy");
    return std::nullopt;
  }

  void validate(const Request& request) const override {
    check_axes(request, "dy");
    for (const std::string_view name : {"x", "y", "residual", "dx", "dresidual"}) {
      const TensorSpec* spec = request.find(name);
      if (spec != nullptr) require_extents(request, name, *spec, request.at("dy").extents, "those of dy");
    }
    for (const std::string_view name : {"mean", "inv_deviation"}) check_statistics(request, "dy", name);
    if (request.find("mean") != nullptr && norm_mode_of(request) == NormMode::rms) {
      refuse(request, "mode=rms has no mean", "leave it out");
    }
    for (const std::string_view name : {"w", "b", "dw", "db"}) check_parameter(request, "dy", name);
    check_activation(request);
    if (request.dynamic_batch && (request.find("dw") != nullptr || request.find("db") != nullptr)) {
      refuse(request, "the batch cannot be dynamic where dw and db are sums over it", "fix the batch");
    }
    // All that there are of w, dw and db repeat alike.
    const TensorSpec* first = nullptr;
    for (const std::string_view name : {"w", "dw", "db"}) {
      const TensorSpec* spec = request.find(name);
      if (spec == nullptr) continue;
      if (first == nullptr) first = spec;
      require_extents(request, name, *spec, first->extents, "the same of w, dw and db");
    }
  }

  Work work(const Request& request) const override { return norm_work(request, 12); }

 private:
  // The argument of the activation's derivative is computed from x, b and residual, and from nothing else.
  static void check_activation(const Request& request) {
    const bool activates = fused_activation_of(request) != ActivationMode::identity;
    if (activates && request.find("y") != nullptr) {
      refuse(request, "y is given and there is an activation", "y tells of a relu alone: leave out one of them");
    }
    for (const std::string_view name : {"b", "residual"}) {
      if (activates || request.find(name) == nullptr) continue;
      refuse(request, fmt::format("{} is given, but there is no activation", name),
             fmt::format("leave {} out: without an activation it does not matter", name));
    }
  }
};

}  // namespace

const Operation& norm_backward_operation() {
  static const NormBackwardOperation definition;
  return definition;
}

NormBackward NormBackward::of(const Request& request) {
  NormBackward view;
  view.dy = request.at("dy");
  view.x = request.at("x");
  view.inv_deviation = request.at("inv_deviation");
  view.dx = request.at("dx");
  view.mean = optional_operand(request, "mean");
  view.w = optional_operand(request, "w");
  view.b = optional_operand(request, "b");
  view.y = optional_operand(request, "y");
  view.residual = optional_operand(request, "residual");
  view.dw = optional_operand(request, "dw");
  view.db = optional_operand(request, "db");
  view.dresidual = optional_operand(request, "dresidual");
  view.axes = request.ints("axes");
  view.mode = norm_mode_of(request);
  view.activation = fused_activation_of(request);
  view.blend = request.blend;
  view.parameter_blend = blend_of(request, "dw");
  view.dresidual_blend = blend_of(request, "dresidual");
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request NormBackward::request() const {
  Request request;
  request.operation = "norm_backward";
  request.operands = {{"dy", dy}, {"x", x}};
  add_operand(request, "w", w);
  add_operand(request, "b", b);
  add_operand(request, "mean", mean);
  request.operands.push_back({"inv_deviation", inv_deviation});
  add_operand(request, "y", y);
  add_operand(request, "residual", residual);
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  add_operand(request, "dw", dw);
  add_operand(request, "db", db);
  add_operand(request, "dresidual", dresidual);
  request.attributes = {
      {"axes", axes}, {"mode", std::string(to_string(mode))}, {"activation", std::string(to_string(activation))}};
  append_classes("parameter", parameter_blend, request.attributes);
  append_classes("dresidual", dresidual_blend, request.attributes);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
