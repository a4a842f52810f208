#include <utility>

#include "operations/activation.h"
#include "operations/axes.h"
#include "operations/norm.h"
#include "operations/operations.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

class NormInferenceOperation final : public Operation {
 public:
  std::string_view name() const override { return "norm_inference"; }
  std::string_view summary() const override { return "batch normalisation by running statistics"; }
  std::vector<EpilogueStage> stages() const override { return norm_stages(); }
  std::string short_form(const Request& request) const override {
    return norm_words(request, "x") + ", running statistics" + norm_epilogue_words(request);
  }
  std::string_view prologue_operand() const override { return "x"; }

  int most_dimensions() const override { return norm_dimensions; }
  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x", .role = Role::input, .extents = "1 to 6 dimensions"},
        norm_w(),
        norm_b(),
        {.name = "running_mean",
         .role = Role::input,
         .batched = false,
         .extents = "as x, with 1 along the axes",
         .left_out = "without gaps",
         .summary = "what x is normalised by",
         .dtypes = DTypes::only_f32},
        {.name = "running_variance",
         .role = Role::input,
         .batched = false,
         .extents = "as running_mean",
         .left_out = "without gaps",
         .summary = "likewise",
         .dtypes = DTypes::only_f32},
        in_place({.name = "y", .role = Role::output, .extents = "as x", .left_out = "dtype and layout of x"},
                 {"x", "residual"}),
        residual_operand("y"),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {axes_attribute({0, 2, 3}, norm_axes),
                                                                 fused_activation_attribute()};
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const auto definitions = with_activation_scalars({epsilon_scalar()});
    return definitions;
  }

  std::vector<ScalarRule> scalar_rules(const Request& request) const override { return norm_rules(request, false); }

  void complete_attributes(Request& request) const override { complete_axes(request, "x"); }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec *x = request.find("x"), *y = request.find("y");
    if (x == nullptr) return std::nullopt;
    if (operand == "y") return laid_out_like(*x, x->extents);
    if (operand == "residual" && request.has(EpilogueStage::add) && y != nullptr) return *y;
    if (operand == "running_mean" || operand == "running_variance") return implied_statistics(request, "x");
    return std::nullopt;
  }

  void validate(const Request& request) const override {
    Request fixed = request;
    fixed.dynamic_batch = false;  // nothing is summed over the batch
    check_axes(fixed, "x");
    require_extents(request, "y", request.at("y"), request.at("x").extents, "those of x");
    for (const std::string_view name : {"running_mean", "running_variance"}) {
      check_statistics(request, "x", name);
      check_parameter(request, "x", name);
    }
    for (const std::string_view name : {"w", "b"}) check_parameter(request, "x", name);
    check_norm_epilogue(request);
  }

  Work work(const Request& request) const override { return norm_work(request, 4); }
};

}  // namespace

const Operation& norm_inference_operation() {
  static const NormInferenceOperation definition;
  return definition;
}

NormInference NormInference::of(const Request& request) {
  NormInference view;
  view.x = request.at("x");
  view.y = request.at("y");
  view.running_mean = request.at("running_mean");
  view.running_variance = request.at("running_variance");
  view.w = optional_operand(request, "w");
  view.b = optional_operand(request, "b");
  view.residual = optional_operand(request, "residual");
  view.axes = request.ints("axes");
  view.epilogue = request.epilogue;
  view.activation = fused_activation_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request NormInference::request() const {
  Request request;
  request.operation = "norm_inference";
  request.operands = {{"x", x}};
  add_operand(request, "w", w);
  add_operand(request, "b", b);
  request.operands.push_back({"running_mean", running_mean});
  request.operands.push_back({"running_variance", running_variance});
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  add_operand(request, "residual", residual);
  request.attributes = {{"axes", axes}, {"activation", std::string(to_string(activation))}};
  request.epilogue = epilogue;
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
