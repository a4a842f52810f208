#include "kiln/generator/operations/pool_backward.h"

#include <fmt/format.h>

#include "operations/operations.h"
#include "operations/pool_window.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

bool is_max(const Request& request) {
  return request.word("mode") == "max";
}

class PoolBackwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "pool_backward"; }
  std::string_view summary() const override {
    return "gradient of maximum and average pooling; with indices also max unpooling";
  }
  std::string short_form(const Request& request) const override {
    return fmt::format("{} pool backward {}{}, {}{}", request.word("mode"), extents_words(request.at("dx")),
                       operand_words(request, "dy"), pool_window_words(request, "dx"), steps_words(steps_of(request)));
  }
  std::string_view channel_name() const override { return "c"; }
  bool adds_in_any_order() const override { return true; }
  std::string_view prologue_operand() const override { return "dy"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy", .role = Role::input, .extents = "N C Q; N C P Q; N C Z P Q"},
        {.name = "x",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dx",
         .left_out = "with indices, and with averages",
         .summary = "the input of pool_forward, with mode=max only"},
        naming_positions({.name = "indices",
                          .role = Role::input,
                          .printing = Printing::when_set,
                          .extents = "as dy",
                          .left_out = "the maxima are found in x",
                          .summary = "what pool_forward gave, with mode=max only and in place of x",
                          .dtypes = DTypes::only_i32},
                         "dx"),
        {.name = "dx",
         .role = Role::output,
         .extents = "N C W; N C H W; N C D H W",
         .left_out = "dtype and layout of x, where x is given"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = pooling_attributes();
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    const TensorSpec* dx = request.find("dx");
    const bool is_given = dx != nullptr && !dx->extents.empty();
    complete_pool_window(request, is_given ? "dx" : "x");
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (operand != "dx" || x == nullptr) return std::nullopt;
    return laid_out_like(*x, x->extents);
  }

  void validate(const Request& request) const override {
    check_pool_input(request, "dx");
    check_pool_output(request, "dx", "dy");
    check_has_maxima(request);
    check_pool_indices(request, "dy");
    const TensorSpec* x = request.find("x");
    const bool has_indices = request.find("indices") != nullptr;
    if (is_max(request) && x == nullptr && !has_indices) {
      refuse(request, "operand x is missing", "add x=dtype:extents:layout or indices=i32:...: where the maxima were");
    }
    if (x != nullptr && has_indices) refuse(request, "x and indices say the same", "leave one of them out");
    if (!is_max(request) && x != nullptr) refuse(request, "averages do not depend on x", "leave it out");
    if (x != nullptr) require_extents(request, "x", *x, request.at("dx").extents, "those of dx");
  }

  Work work(const Request& request) const override {
    const TensorSpec &dy = request.at("dy"), &dx = request.at("dx");
    Work work;
    work.flops = static_cast<double>(dy.elements());
    for (const int64_t taps : request.ints("window")) work.flops *= static_cast<double>(taps);
    work.read_bytes = bytes_of(dy);
    if (const TensorSpec* indices = request.find("indices")) work.read_bytes += bytes_of(*indices);
    if (const TensorSpec* x = request.find("x")) work.read_bytes += bytes_of(*x);
    work.write_bytes = bytes_of(dx);
    if (request.blend.beta != Scale::zero) work.read_bytes += work.write_bytes;
    return work;
  }
};

}  // namespace

const Operation& pool_backward_operation() {
  static const PoolBackwardOperation definition;
  return definition;
}

PoolBackward PoolBackward::of(const Request& request) {
  PoolBackward view;
  static_cast<Pooling&>(view) = pooling_of(request);
  view.dy = request.at("dy");
  view.dx = request.at("dx");
  if (const TensorSpec* x = request.find("x")) view.x = *x;
  if (const TensorSpec* indices = request.find("indices")) view.indices = *indices;
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request PoolBackward::request() const {
  Request request;
  request.operation = "pool_backward";
  request.operands = {{"dy", dy}};
  if (!x.extents.empty()) request.operands.push_back({"x", x});
  if (!indices.extents.empty()) request.operands.push_back({"indices", indices});
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  request.attributes = attributes_of(*this);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
