#include <algorithm>
#include <utility>

#include "operations/axes.h"
#include "operations/norm.h"
#include "operations/operations.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

// The least extents of scale and shift: those of `x`, but 1 along axes where neither w nor b has them.
std::vector<int64_t> least_extents(const Request& request, const TensorSpec& x) {
  std::vector<int64_t> extents = reduced_extents(request, x.extents);
  for (const std::string_view name : {"w", "b"}) {
    const TensorSpec* parameter = request.find(name);
    const size_t dimensions = parameter == nullptr ? 0 : std::min(extents.size(), parameter->extents.size());
    for (size_t d = 0; d < dimensions; ++d) {
      if (parameter->extents[d] == x.extents[d]) extents[d] = x.extents[d];
    }
  }
  return extents;
}

// Refuses what has other extents, along axes neither these nor x's.
void check_pairs(const Request& request, std::string_view name) {
  const TensorSpec& spec = request.at(name);
  const std::vector<int64_t>& x = request.at("x").extents;
  std::vector<int64_t> extents = least_extents(request, request.at("x"));
  for (const int64_t axis : request.ints("axes")) {
    const auto d = static_cast<size_t>(axis);
    if (d < spec.extents.size() && spec.extents[d] == x[d]) extents[d] = x[d];
  }
  require_extents(request, name, spec, extents, "those of x, but along axes that w and b repeat in: 1 will do there");
}

class NormAffineOperation final : public Operation {
 public:
  std::string_view name() const override { return "norm_affine"; }
  std::string_view summary() const override {
    return "a normalisation as one multiplication and one addition for each element";
  }
  std::string short_form(const Request& request) const override {
    return std::string(norm_mode_words(request)) + norm_words(request, "x") + ", scale and shift";
  }
  bool has_order_of_sums() const override { return true; }
  std::optional<std::string> why_images_mix(const Request& request) const override {
    return why_axes_mix_images(request.ints("axes"), "is what statistics are taken of");
  }
  size_t batch_dimensions(const Request& request, std::string_view operand) const override {
    return dimensions_before_axes(request, request.ints("axes"), operand);
  }
  bool has_blend() const override { return false; }
  std::string_view prologue_operand() const override { return "x"; }

  int most_dimensions() const override { return norm_dimensions; }
  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "x", .role = Role::input, .extents = "1 to 6 dimensions"},
        norm_w(),
        norm_b(),
        {.name = "scale",
         .role = Role::output,
         .extents = "as x, or 1 along axes where w and b repeat",
         .left_out = "with those 1, without gaps",
         .summary = "what elements of x are multiplied by",
         .dtypes = DTypes::only_f32},
        {.name = "shift",
         .role = Role::output,
         .extents = "as scale",
         .left_out = "without gaps",
         .summary = "added after that",
         .dtypes = DTypes::only_f32},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        axes_attribute({-1}, norm_axes),
        {"mode", std::string("standard"), Printing::always, {"standard", "rms"}, "rms: the mean counts as 0"}};
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const override {
    static const std::vector<ScalarDefinition> definitions = {epsilon_scalar()};
    return definitions;
  }

  std::vector<ScalarRule> scalar_rules(const Request&) const override { return {epsilon_rule()}; }

  void complete_attributes(Request& request) const override { complete_axes(request, "x"); }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (x == nullptr || (operand != "scale" && operand != "shift")) return std::nullopt;
    const TensorSpec* scale = request.find("scale");
    const bool as_scale = operand == "shift" && scale != nullptr && scale->rank() == x->rank();
    return TensorSpec::packed(DType::f32, as_scale ? scale->extents : least_extents(request, *x),
                              dimension_letters(x->rank()));
  }

  void validate(const Request& request) const override {
    check_axes(request, "x");
    for (const std::string_view name : {"w", "b"}) check_parameter(request, "x", name);
    check_pairs(request, "scale");
    require_extents(request, "shift", request.at("shift"), request.at("scale").extents, "those of scale");
  }

  Work work(const Request& request) const override { return norm_work(request, 4); }
};

}  // namespace

const Operation& norm_affine_operation() {
  static const NormAffineOperation definition;
  return definition;
}

NormAffine NormAffine::of(const Request& request) {
  NormAffine view;
  view.x = request.at("x");
  view.scale = request.at("scale");
  view.shift = request.at("shift");
  view.w = optional_operand(request, "w");
  view.b = optional_operand(request, "b");
  view.axes = request.ints("axes");
  view.mode = norm_mode_of(request);
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request NormAffine::request() const {
  Request request;
  request.operation = "norm_affine";
  request.operands = {{"x", x}};
  add_operand(request, "w", w);
  add_operand(request, "b", b);
  if (!scale.extents.empty()) request.operands.push_back({"scale", scale});
  if (!shift.extents.empty()) request.operands.push_back({"shift", shift});
  request.attributes = {{"axes", axes}, {"mode", std::string(to_string(mode))}};
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
