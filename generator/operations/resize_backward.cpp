#include "kiln/generator/operations/resize_backward.h"

#include <fmt/format.h>

#include <utility>

#include "operations/operations.h"
#include "operations/resizing.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class ResizeBackwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "resize_backward"; }
  std::string_view summary() const override { return "gradient of resize"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("{} resize backward {} -> {}{}", request.word("mode"), extents_words(request.at("dy")),
                       extents_words(request.at("dx")), operand_words(request, "dx"));
  }
  std::string_view channel_name() const override { return "c"; }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "dy"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy",
         .role = Role::input,
         .extents = "N C Q; N C P Q; N C Z P Q",
         .summary = "the gradient with respect to resize's y"},
        {.name = "dx", .role = Role::output, .extents = "N C W; N C H W; N C D H W"},
    };
    return definitions;
  }
  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = resizing_attributes();
    return definitions;
  }
  const std::vector<ScalarDefinition>& scalars() const override { return resizing_scalars(); }
  std::vector<ScalarRule> scalar_rules(const Request& request) const override { return resizing_scalar_rules(request); }

  void complete_attributes(Request& request) const override { complete_resizing(request, "dx"); }
  // The extents of x do not follow from those of y.
  std::optional<TensorSpec> implied_operand(const Request&, std::string_view) const override { return std::nullopt; }
  void validate(const Request& request) const override { check_resizing(request, "dx", "dy"); }

  Work work(const Request& request) const override {
    const TensorSpec &dy = request.at("dy"), &dx = request.at("dx");
    Work work;
    work.flops = 2 * static_cast<double>(dy.elements()) * taps_per_output(request, "dx", "dy");
    work.read_bytes = bytes_of(dy);
    work.write_bytes = bytes_of(dx);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }
};

}  // namespace

const Operation& resize_backward_operation() {
  static const ResizeBackwardOperation definition;
  return definition;
}

ResizeBackward ResizeBackward::of(const Request& request) {
  ResizeBackward view;
  static_cast<Resizing&>(view) = resizing_of(request);
  view.dy = request.at("dy");
  view.dx = request.at("dx");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request ResizeBackward::request() const {
  Request request;
  request.operation = "resize_backward";
  request.operands = {{"dy", dy}, {"dx", dx}};
  request.attributes = attributes_of(*this);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
