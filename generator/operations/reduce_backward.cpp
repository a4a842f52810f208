#include "kiln/generator/operations/reduce_backward.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>

#include "kiln/generator/operation.h"
#include "operations/axes.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/reduce_words.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

using enum ReduceMode;

class ReduceBackwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "reduce_backward"; }
  std::string_view summary() const override { return "gradients of sums, products, extremes and norms"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("gradient of {} reduction {}{}, axes {}", request.word("mode"), extents_words(request.at("dx")),
                       operand_words(request, "dy"), axes_words(request));
  }
  size_t batch_dimensions(const Request& request, std::string_view operand) const override {
    return dimensions_before_axes(request, request.ints("axes"), operand);
  }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy", .role = Role::input, .extents = "as dx, with 1 along the axes", .summary = "the gradient of y"},
        {.name = "x",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dx",
         .left_out = "with add, mean, min and max, which do not read it"},
        {.name = "y",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dy",
         .left_out = "but with mul, mul_no_zeros and norm2",
         .summary = "the result of reduce"},
        {.name = "indices",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as dy",
         .left_out = "but with min, max and amax",
         .summary = "the positions of the extremes, as reduce gives them",
         .dtypes = DTypes::only_i32},
        {.name = "dx",
         .role = Role::output,
         .extents = "1 to 5 dimensions",
         .left_out = "dtype and layout of x; without x it has to be given"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        axes_attribute({}, "the dimensions that were reduced"),
        {"mode", std::string("add"), Printing::always, reduce_mode_words(), "how the elements were combined"},
    };
    return definitions;
  }

  void complete_attributes(Request& request) const override {
    complete_axes(request, request.find("dx") != nullptr ? "dx" : "x");
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (operand != "dx" || x == nullptr) return std::nullopt;
    return laid_out_like(*x, x->extents);
  }

  void validate(const Request& request) const override {
    require_rank(request, "dx");
    check_axes(request, "dx");
    const ReduceMode mode = reduce_mode_of(request);
    const TensorSpec& dx = request.at("dx");
    const std::vector<int64_t> reduced = reduced_extents(request, dx.extents);
    require_extents(request, "dy", request.at("dy"), reduced, "those of dx, and 1 along the axes");
    check(request, "x", gradient_reads_x(mode), dx.extents, "those of dx");
    check(request, "y", gradient_reads_y(mode), reduced, "those of dy");
    check(request, "indices", has_indices(mode), reduced, "those of dy");
    if (has_indices(mode) && ReduceBackward::of(request).row_length() > std::numeric_limits<int32_t>::max()) {
      refuse(request, "a row has more positions than i32 has numbers", "reduce fewer elements");
    }
  }

  Work work(const Request& request) const override { return pointwise_work(request, 1); }

 private:
  static void check(const Request& request, std::string_view operand, bool is_read, const std::vector<int64_t>& extents,
                    std::string_view which) {
    require_if_read(
        request, operand, is_read,
        fmt::format("the gradient of {} reads {}", request.word("mode"), inputs_words(reduce_mode_of(request))));
    if (is_read) require_extents(request, operand, request.at(operand), extents, which);
  }

  static std::string inputs_words(ReduceMode mode) {
    std::string words = "dy";
    if (gradient_reads_x(mode)) words += ", x";
    if (gradient_reads_y(mode)) words += ", y";
    if (has_indices(mode)) words += ", indices";
    return words;
  }
};

}  // namespace

const Operation& reduce_backward_operation() {
  static const ReduceBackwardOperation definition;
  return definition;
}

bool gradient_reads_x(ReduceMode mode) {
  return mode == mul || mode == mul_no_zeros || mode == norm1 || mode == norm2 || mode == amax;
}

bool gradient_reads_y(ReduceMode mode) {
  return mode == mul || mode == mul_no_zeros || mode == norm2;
}

int64_t ReduceBackward::row_length() const {
  int64_t elements = 1;
  for (const int64_t axis : axes) elements *= dx.extents[static_cast<size_t>(axis)];
  return elements;
}

ReduceBackward ReduceBackward::of(const Request& request) {
  ReduceBackward view;
  view.dy = request.at("dy");
  view.x = optional_operand(request, "x");
  view.y = optional_operand(request, "y");
  view.indices = optional_operand(request, "indices");
  view.dx = request.at("dx");
  view.axes = request.ints("axes");
  view.mode = reduce_mode_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request ReduceBackward::request() const {
  Request request;
  request.operation = "reduce_backward";
  request.operands = {{"dy", dy}};
  if (x) request.operands.push_back({"x", *x});
  if (y) request.operands.push_back({"y", *y});
  if (indices) request.operands.push_back({"indices", *indices});
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  request.attributes = {{"axes", axes}, {"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
