#include "kiln/generator/operations/unpool_backward.h"

#include <fmt/format.h>

#include <algorithm>

#include "operations/operations.h"
#include "operations/pool_window.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

class UnpoolBackwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "unpool_backward"; }
  std::string_view summary() const override { return "gradient of max unpooling: dy at the positions of maxima"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("unpool backward {}{}, {}{}", extents_words(request.at("dy")), operand_words(request, "dy"),
                       per_axis_words(request.ints("window")), steps_words(steps_of(request)));
  }
  std::string_view channel_name() const override { return "c"; }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "dy"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy",
         .role = Role::input,
         .extents = "N C W; N C H W; N C D H W",
         .summary = "has the extents of what was unpooled to"},
        naming_positions({.name = "indices",
                          .role = Role::input,
                          .extents = "N C Q; N C P Q; N C Z P Q",
                          .summary = "what pool_forward gave",
                          .dtypes = DTypes::only_i32},
                         "dy"),
        {.name = "dx", .role = Role::output, .extents = "as indices", .left_out = "dtype of dy, layout of indices"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = pool_window_attributes();
    return definitions;
  }

  void complete_attributes(Request& request) const override { complete_pool_window(request, "dy"); }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec *dy = request.find("dy"), *indices = request.find("indices");
    if (operand != "dx" || dy == nullptr || indices == nullptr) return std::nullopt;
    TensorSpec dx = laid_out_like(*indices, indices->extents);
    dx.dtype = dy->dtype;
    return dx;
  }

  void validate(const Request& request) const override {
    check_pool_input(request, "dy");
    check_pool_output(request, "dy", "dx");
    check_pool_indices(request, "dx");
  }

  Work work(const Request& request) const override {
    const TensorSpec &dy = request.at("dy"), &dx = request.at("dx");
    Work work;
    const double named = static_cast<double>(dx.elements()) * size_of(dy.dtype);
    work.read_bytes = std::min(bytes_of(dy), named) + bytes_of(request.at("indices"));
    work.write_bytes = bytes_of(dx);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }
};

}  // namespace

const Operation& unpool_backward_operation() {
  static const UnpoolBackwardOperation definition;
  return definition;
}

UnpoolBackward UnpoolBackward::of(const Request& request) {
  UnpoolBackward view;
  static_cast<PoolWindow&>(view) = pool_window_of(request);
  view.dy = request.at("dy");
  view.indices = request.at("indices");
  view.dx = request.at("dx");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request UnpoolBackward::request() const {
  Request request;
  request.operation = "unpool_backward";
  request.operands = {{"dy", dy}, {"indices", indices}};
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  request.attributes = attributes_of(*this);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
