#include "kiln/generator/operations/conv_backward_filter.h"

#include <fmt/format.h>

#include "operations/convolution.h"
#include "operations/operations.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class ConvBackwardFilterOperation final : public Operation {
 public:
  std::string_view name() const override { return "conv_backward_filter"; }
  std::string_view summary() const override { return "gradient of convolution by its filter, in 1-D to 3-D"; }
  bool has_arithmetic() const override { return true; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {"x", Role::input, true, Printing::always, "N,C,H,W, or N,C,W, or N,C,D,H,W"},
        {"dy", Role::input, true, Printing::always, "N,K,P,Q, or without P, or with Z,P,Q"},
        {"dw", Role::output, false, Printing::always, "K,C/groups,R,S, or without R, or with T,R,S"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override { return convolution_attributes(); }

  void complete_attributes(Request& request) const override {
    complete_convolution_attributes(request, spatial_axes(request));
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
    work.flops = convolution_flops(dy.elements(), dw);
    work.read_bytes = bytes_of(x) + bytes_of(dy) + (request.blend.beta != Scale::zero ? bytes_of(dw) : 0);
    work.write_bytes = bytes_of(dw);
    return work;
  }

 private:
  static constexpr ConvNames names{"x", "dw", "dy"};
};

}  // namespace

const Operation& conv_backward_filter_operation() {
  static const ConvBackwardFilterOperation definition;
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
  request.operation = "conv_backward_filter";
  request.operands = {{"x", x}, {"dy", dy}, {"dw", dw}};
  add_conv_pass(request, *this);
  return finished(std::move(request));
}

}  // namespace kiln
