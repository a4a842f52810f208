#include <fmt/format.h>

#include <utility>

#include "operations/activation.h"
#include "operations/axes.h"
#include "operations/norm.h"
#include "operations/operations.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

class NormForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "norm_forward"; }
  std::string_view summary() const override { return "layer, RMS, group, instance and batch normalisation"; }
  std::vector<EpilogueStage> stages() const override { return norm_stages(); }
  std::string short_form(const Request& request) const override {
    return fmt::format("{}{}{}", norm_mode_words(request), norm_words(request, "x"), norm_epilogue_words(request));
  }
  bool has_order_of_sums() const override { return true; }
  std::optional<std::string> why_images_mix(const Request& request) const override {
    return why_axes_mix_images(request.ints("axes"), "is what statistics are taken of");
  }
  size_t batch_dimensions(const Request& request, std::string_view operand) const override {
    return dimensions_before_axes(request, request.ints("axes"), operand);
  }
  std::string_view prologue_operand() const override { return "x"; }

  int most_dimensions() const override { return norm_dimensions; }
  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x", .role = Role::input, .extents = "1 to 6 dimensions"},
        norm_w(),
        norm_b(),
        in_place({.name = "y", .role = Role::output, .extents = "as x", .left_out = "dtype and layout of x"},
                 {"x", "residual"}),
        {.name = "mean",
         .role = Role::output,
         .printing = Printing::when_set,
         .extents = "as x, with 1 along the axes",
         .left_out = "not written",
         .summary = "of each row; not for mode=rms",
         .dtypes = DTypes::only_f32},
        {.name = "inv_deviation",
         .role = Role::output,
         .printing = Printing::when_set,
         .extents = "as mean",
         .left_out = "not written",
         .summary = "r of each row",
         .dtypes = DTypes::only_f32},
        {.name = "running_mean",
         .role = Role::updated,
         .printing = Printing::when_set,
         .extents = "as mean",
         .left_out = "not updated",
         .summary = "becomes (1 - momentum) times the old value plus momentum times the row's; not for mode=rms",
         .dtypes = DTypes::only_f32},
        {.name = "running_variance",
         .role = Role::updated,
         .printing = Printing::when_set,
         .extents = "as mean",
         .left_out = "not updated",
         .summary = "likewise",
         .dtypes = DTypes::only_f32},
        residual_operand("y"),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {axes_attribute({-1}, norm_axes), norm_mode_attribute(),
                                                                 fused_activation_attribute()};
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const auto definitions = with_activation_scalars({
        epsilon_scalar(),
        {"momentum", 0.1F, 0.125F, "the part of this call in the running statistics, 0 to 1"},
    });
    return definitions;
  }

  std::vector<ScalarRule> scalar_rules(const Request& request) const override { return norm_rules(request, true); }

  void complete_attributes(Request& request) const override { complete_axes(request, "x"); }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec *x = request.find("x"), *y = request.find("y");
    if (x == nullptr) return std::nullopt;
    if (operand == "y") return laid_out_like(*x, x->extents);
    if (operand == "residual" && request.has(EpilogueStage::add) && y != nullptr) return *y;
    return std::nullopt;
  }

  void validate(const Request& request) const override {
    check_axes(request, "x");
    require_extents(request, "y", request.at("y"), request.at("x").extents, "those of x");
    for (const std::string_view name : {"w", "b"}) check_parameter(request, "x", name);
    for (const std::string_view name : statistics) check_statistics(request, "x", name);
    if (norm_mode_of(request) == NormMode::rms) {
      for (const std::string_view name : {"mean", "running_mean", "running_variance"}) {
        if (request.find(name) != nullptr) refuse(request, "mode=rms has no " + std::string(name), "leave it out");
      }
    }
    if ((request.find("running_mean") == nullptr) != (request.find("running_variance") == nullptr)) {
      refuse(request, "one of running_mean and running_variance is missing", "give both or none");
    }
    check_norm_epilogue(request);
  }

  Work work(const Request& request) const override { return norm_work(request, 8); }

 private:
  static constexpr std::string_view statistics[] = {"mean", "inv_deviation", "running_mean", "running_variance"};
};

}  // namespace

const Operation& norm_forward_operation() {
  static const NormForwardOperation definition;
  return definition;
}

NormForward NormForward::of(const Request& request) {
  NormForward view;
  view.x = request.at("x");
  view.y = request.at("y");
  view.w = optional_operand(request, "w");
  view.b = optional_operand(request, "b");
  view.mean = optional_operand(request, "mean");
  view.inv_deviation = optional_operand(request, "inv_deviation");
  view.running_mean = optional_operand(request, "running_mean");
  view.running_variance = optional_operand(request, "running_variance");
  view.residual = optional_operand(request, "residual");
  view.axes = request.ints("axes");
  view.mode = norm_mode_of(request);
  view.epilogue = request.epilogue;
  view.activation = fused_activation_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request NormForward::request() const {
  Request request;
  request.operation = "norm_forward";
  request.operands = {{"x", x}};
  add_operand(request, "w", w);
  add_operand(request, "b", b);
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  add_operand(request, "mean", mean);
  add_operand(request, "inv_deviation", inv_deviation);
  add_operand(request, "running_mean", running_mean);
  add_operand(request, "running_variance", running_variance);
  add_operand(request, "residual", residual);
  request.attributes = {
      {"axes", axes}, {"mode", std::string(to_string(mode))}, {"activation", std::string(to_string(activation))}};
  request.epilogue = epilogue;
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
