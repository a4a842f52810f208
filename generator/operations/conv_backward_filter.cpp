#include "kiln/generator/operations/conv_backward_filter.h"

#include <fmt/format.h>

#include "operations/convolution.h"
#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class ConvBackwardFilterOperation final : public Operation {
 public:
  explicit ConvBackwardFilterOperation(Filters filters)
      : filters_(filters),
        operands_{
            {.name = "x",
             .role = Role::input,
             .extents = "N C W; N C H W; N C D H W",
             .dtypes = DTypes::floating_or_fp8},
            {.name = "dy",
             .role = Role::input,
             .extents = "N K Q; N K P Q; N K Z P Q",
             .dtypes = DTypes::floating_or_fp8},
            filter_operand("dw", Role::output, filters),
        } {}

  std::string_view name() const override {
    return filters_ == Filters::local ? "local_conv_backward_filter" : "conv_backward_filter";
  }
  std::string_view summary() const override {
    return filters_ == Filters::local ? "gradient of local convolution with respect to its filters"
                                      : "gradient of convolution with respect to its filter";
  }
  std::string short_form(const Request& request) const override {
    return fmt::format("{}conv filter gradient {}{}, {}{}", locality_words(filters_), extents_words(request.at("x")),
                       operand_words(request, "x"), extents_words(request.at("dy")), convolution_words(request, "dw"));
  }
  std::string_view prologue_operand() const override { return "x"; }
  std::optional<size_t> prologue_channel_dimension(int /*rank*/) const override { return 1; }
  bool has_arithmetic() const override { return true; }

  int most_dimensions() const override { return convolution_dimensions(filters_); }
  const std::vector<OperandDefinition>& operands() const override { return operands_; }

  const std::vector<AttributeDefinition>& attributes() const override { return convolution_attributes(filters_); }

  void complete_attributes(Request& request) const override {
    complete_convolution_attributes(request, names, spatial_axes(request));
  }

  // The window does not follow from x and dy: a stride leaves several.
  std::optional<TensorSpec> implied_operand(const Request&, std::string_view) const override { return std::nullopt; }

  void validate(const Request& request) const override {
    check_convolution_filter(request, names, "x", spatial_axes(request), request.at("x").extents[1]);
    check_convolution_output(request, names);
  }

  Work work(const Request& request) const override {
    const TensorSpec &x = request.at("x"), &dy = request.at("dy"), &dw = request.at("dw");
    Work work;
    work.flops = convolution_flops(dy, dw);
    work.read_bytes = bytes_of(x) + bytes_of(dy) + (request.blend.beta != Scale::zero ? bytes_of(dw) : 0);
    work.write_bytes = bytes_of(dw);
    work.factors = common_type(x, dy);
    return work;
  }

 private:
  static constexpr ConvNames names{"x", "dw", "dy"};

  Filters filters_;
  std::vector<OperandDefinition> operands_;
};

}  // namespace

const Operation& conv_backward_filter_operation() {
  static const ConvBackwardFilterOperation definition(Filters::shared);
  return definition;
}

const Operation& local_conv_backward_filter_operation() {
  static const ConvBackwardFilterOperation definition(Filters::local);
  return definition;
}

ConvBackwardFilter ConvBackwardFilter::of(const Request& request) {
  ConvBackwardFilter view;
  static_cast<ConvPass&>(view) = conv_pass_of(request);
  view.x = request.at("x");
  view.dy = request.at("dy");
  view.dw = request.at("dw");
  return view;
}

Request ConvBackwardFilter::request() const {
  Request request;
  request.operands = {{"x", x}, {"dy", dy}, {"dw", dw}};
  add_conv_pass(request, "conv_backward_filter", *this);
  return finished(std::move(request));
}

}  // namespace kiln
