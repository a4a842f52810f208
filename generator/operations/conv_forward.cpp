#include "kiln/generator/operations/conv_forward.h"

#include <fmt/format.h>

#include <algorithm>

#include "operations/convolution.h"
#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

class ConvForwardOperation final : public Operation {
 public:
  explicit ConvForwardOperation(Filters filters)
      : filters_(filters),
        operands_{
            {.name = "x", .role = Role::input, .extents = "N C W; N C H W; N C D H W", .dtypes = factors(filters)},
            filter_operand("w", Role::input, filters, factors(filters)),
            in_place({.name = "y",
                      .role = Role::output,
                      .extents = "N K Q; N K P Q; N K Z P Q",
                      .left_out = filters == Filters::local ? "dtype and layout of x"
                                                            : "dtype and layout of x; integers: dtype of w, or i32",
                      .dtypes = results(filters)},
                     {"residual"}),
            bias_operand("K", "y", results(filters)),
            residual_operand("y", results(filters)),
        } {}

  std::string_view name() const override { return filters_ == Filters::local ? "local_conv_forward" : "conv_forward"; }
  std::string_view summary() const override {
    return filters_ == Filters::local
               ? "convolution with filters of their own for each output, or for each region of a grid"
               : "convolution in 1-D, 2-D and 3-D, with groups and any stride, dilation and padding";
  }
  std::string short_form(const Request& request) const override {
    return fmt::format("{}conv {}{} -> {}{}{}", locality_words(filters_), extents_words(request.at("x")),
                       operand_words(request, "x"), request.at("y").extents[1], convolution_words(request, "w"),
                       stages_words(request));
  }
  std::string_view channel_name() const override { return "k"; }
  std::string_view prologue_operand() const override { return "x"; }
  bool prologue_knows_images() const override { return filters_ != Filters::local; }
  bool has_arithmetic() const override { return true; }
  bool has_order_of_sums() const override { return true; }
  bool has_weights() const override { return true; }
  std::vector<EpilogueStage> stages() const override { return {all_stages.begin(), all_stages.end()}; }

  int most_dimensions() const override { return convolution_dimensions(filters_); }
  const std::vector<OperandDefinition>& operands() const override { return operands_; }

  const std::vector<AttributeDefinition>& attributes() const override { return convolution_attributes(filters_); }

  void complete_attributes(Request& request) const override {
    complete_convolution_attributes(request, names, spatial_axes(request));
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand == "y") return implied_y(request);
    return implied_stage_operand(request, operand);
  }

  void validate(const Request& request) const override {
    check_filter(request);
    check_convolution_output(request, names);
    check_stage_operands(request);
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &w = request.at("w"), &y = request.at("y");
    Work work;
    work.flops = convolution_flops(y, w);
    work.read_bytes = bytes_of(x) + bytes_of(w) + (request.blend.beta != Scale::zero ? bytes_of(y) : 0) +
                      stage_operand_bytes(request);
    work.write_bytes = bytes_of(y);
    work.factors = common_type(x, w);
    return work;
  }

 private:
  static constexpr ConvNames names{"x", "w", "y"};

  static DTypes factors(Filters filters) {
    return filters == Filters::local ? DTypes::floating_or_fp8 : DTypes::factors;
  }
  static DTypes results(Filters filters) { return filters == Filters::local ? DTypes::floating_or_fp8 : DTypes::any; }

  Filters filters_;
  std::vector<OperandDefinition> operands_;

  static void check_filter(const Request& request) {
    check_convolution_filter(request, names, "x", spatial_axes(request), request.at("x").extents[1]);
  }

  static std::optional<TensorSpec> implied_y(const Request& request) {
    if (request.find("x") == nullptr || request.find("w") == nullptr) return std::nullopt;
    check_filter(request);
    TensorSpec y = laid_out_like(request.at("x"), convolution_extents(request, names));
    y.dtype = type_of_product(request.at("x"), request.at("w"));
    y.alignment = std::max(y.alignment, size_of(y.dtype));
    return y;
  }
};

}  // namespace

const Operation& conv_forward_operation() {
  static const ConvForwardOperation definition(Filters::shared);
  return definition;
}

const Operation& local_conv_forward_operation() {
  static const ConvForwardOperation definition(Filters::local);
  return definition;
}

ConvForward ConvForward::of(const Request& request) {
  ConvForward view;
  static_cast<ConvPass&>(view) = conv_pass_of(request);
  view.x = request.at("x");
  view.w = request.at("w");
  view.y = request.at("y");
  view.bias = optional_operand(request, "bias");
  view.residual = optional_operand(request, "residual");
  view.epilogue = request.epilogue;
  return view;
}

Request ConvForward::request() const {
  Request request;
  request.operands = {{"x", x}, {"w", w}};
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  if (bias) request.operands.push_back({"bias", *bias});
  if (residual) request.operands.push_back({"residual", *residual});
  add_conv_pass(request, "conv_forward", *this);
  request.epilogue = epilogue;
  return finished(std::move(request));
}

}  // namespace kiln
