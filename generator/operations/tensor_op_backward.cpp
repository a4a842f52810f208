#include "kiln/generator/operations/tensor_op_backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "kiln/generator/operation.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"
#include "operations/tensor_op_words.h"
#include "operations/words.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

constexpr std::array tensor_op_inputs = {TensorOpInput::a, TensorOpInput::b, TensorOpInput::c};

TensorOpInput input_of(const Request& request) {
  return word_of(request, "input", tensor_op_inputs);
}

bool is_comparison(TensorOpMode mode) {
  return (mode >= TensorOpMode::eq && mode <= TensorOpMode::ge) || mode == TensorOpMode::logical_not;
}

// Modes that have a gradient by some input.
std::vector<std::string> words_of_modes() {
  std::vector<std::string> words;
  for (const TensorOpMode mode : tensor_op_modes()) {
    const bool has_one = std::any_of(tensor_op_inputs.begin(), tensor_op_inputs.end(),
                                     [&](TensorOpInput by) { return has_gradient(mode, by); });
    if (has_one) words.emplace_back(to_string(mode));
  }
  return words;
}

OperandDefinition input_definition(std::string name) {
  return {.name = std::move(name),
          .role = Role::input,
          .printing = Printing::when_set,
          .extents = "in each dimension dy's or 1",
          .left_out = "with a gradient that does not read it",
          .summary = "an extent of 1 repeats",
          .repeats = true};
}

class TensorOpBackwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "tensor_op_backward"; }
  std::string_view summary() const override { return "gradients of element-wise arithmetic"; }
  bool adds_in_any_order() const override { return true; }
  std::string short_form(const Request& request) const override {
    return fmt::format("gradient of tensor {} {}{}, by {}", request.word("mode"), extents_words(request.at("dy")),
                       operand_words(request, "dy"), request.word("input"));
  }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy", .role = Role::input, .extents = "1 to 5 dimensions", .summary = "the gradient of y"},
        input_definition("a"),
        input_definition("b"),
        {.name = "dx",
         .role = Role::output,
         .extents = "in each dimension dy's, or 1",
         .left_out = "dtype and layout of the input, if that is read; else it has to be given",
         .summary = "the gradient of the input; an extent of 1 is of one that repeats"},
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"mode", std::string("add"), Printing::always, words_of_modes(), "what was computed"},
        {"input", std::string("a"), Printing::always, words_of(tensor_op_inputs), "the input whose gradient it is"},
    };
    return definitions;
  }

  void complete_attributes(Request&) const override {}

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* input = request.find(to_string(input_of(request)));
    if (operand != "dx" || input == nullptr) return std::nullopt;
    return laid_out_like(*input, input->extents);
  }

  void validate(const Request& request) const override {
    require_rank(request, "dy");
    const TensorOpMode mode = tensor_op_mode_of(request);
    const TensorOpInput by = input_of(request);
    if (!has_gradient(mode, by)) {
      refuse(request, fmt::format("{} has no gradient by {}", request.word("mode"), to_string(by)),
             static_cast<int>(by) < inputs_of(mode) ? "it is 0" : "it has no such input");
    }
    check_input(request, "a", gradient_reads_a(mode, by));
    check_input(request, "b", gradient_reads_b(mode, by));
    require_extents_or_ones(request, "dx", "dy");
    if (request.dynamic_batch && request.at("dx").extents[0] != request.at("dy").extents[0]) {
      refuse(request, "the batch cannot be dynamic where gradients are added up along it", "fix the batch");
    }
  }

  Work work(const Request& request) const override {
    Work work = pointwise_work(request, 0);
    work.flops = 2 * static_cast<double>(request.at("dy").elements());
    return work;
  }

 private:
  static void check_input(const Request& request, std::string_view operand, bool is_read) {
    require_if_read(request, operand, is_read,
                    fmt::format("the gradient of {} by {} {} it", request.word("mode"), request.word("input"),
                                is_read ? "reads" : "does not read"));
    if (is_read) require_extents_or_ones(request, operand, "dy");
  }
};

}  // namespace

const Operation& tensor_op_backward_operation() {
  static const TensorOpBackwardOperation definition;
  return definition;
}

std::string_view to_string(TensorOpInput input) {
  switch (input) {
    case TensorOpInput::a:
      return "a";
    case TensorOpInput::b:
      return "b";
    case TensorOpInput::c:
      return "c";
  }
  return "?";
}

bool has_gradient(TensorOpMode mode, TensorOpInput by) {
  if (static_cast<int>(by) >= inputs_of(mode) || is_comparison(mode)) return false;
  return mode != TensorOpMode::select || by != TensorOpInput::a;
}

bool gradient_reads_a(TensorOpMode mode, TensorOpInput by) {
  switch (mode) {
    case TensorOpMode::add:
    case TensorOpMode::sub:
    case TensorOpMode::neg:
      return false;
    case TensorOpMode::mul:
    case TensorOpMode::div:
      return by == TensorOpInput::b;
    default:
      return true;
  }
}

bool gradient_reads_b(TensorOpMode mode, TensorOpInput by) {
  switch (mode) {
    case TensorOpMode::mul:
      return by == TensorOpInput::a;
    case TensorOpMode::div:
    case TensorOpMode::min:
    case TensorOpMode::max:
    case TensorOpMode::pow:
      return true;
    default:
      return false;
  }
}

std::vector<int64_t> TensorOpBackward::axes() const {
  Ints axes;
  for (size_t d = 0; d < dy.extents.size(); ++d) {
    if (dx.extents[d] != dy.extents[d]) axes.push_back(static_cast<int64_t>(d));
  }
  return axes;
}

TensorOpBackward TensorOpBackward::of(const Request& request) {
  TensorOpBackward view;
  view.dy = request.at("dy");
  view.a = optional_operand(request, "a");
  view.b = optional_operand(request, "b");
  view.dx = request.at("dx");
  view.mode = tensor_op_mode_of(request);
  view.input = input_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request TensorOpBackward::request() const {
  Request request;
  request.operation = "tensor_op_backward";
  request.operands = {{"dy", dy}};
  if (a) request.operands.push_back({"a", *a});
  if (b) request.operands.push_back({"b", *b});
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  request.attributes = {{"mode", std::string(to_string(mode))}, {"input", std::string(to_string(input))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
