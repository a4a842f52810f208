#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/tensor_op_words.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

struct Mode {
  TensorOpMode mode;
  std::string_view name;
  int inputs;
};

constexpr std::array<Mode, 20> modes = {
    {{TensorOpMode::add, "add", 2},         {TensorOpMode::sub, "sub", 2},      {TensorOpMode::mul, "mul", 2},
     {TensorOpMode::div, "div", 2},         {TensorOpMode::min, "min", 2},      {TensorOpMode::max, "max", 2},
     {TensorOpMode::pow, "pow", 2},         {TensorOpMode::eq, "eq", 2},        {TensorOpMode::ne, "ne", 2},
     {TensorOpMode::lt, "lt", 2},           {TensorOpMode::le, "le", 2},        {TensorOpMode::gt, "gt", 2},
     {TensorOpMode::ge, "ge", 2},           {TensorOpMode::sqrt, "sqrt", 1},    {TensorOpMode::exp, "exp", 1},
     {TensorOpMode::log, "log", 1},         {TensorOpMode::abs, "abs", 1},      {TensorOpMode::neg, "neg", 1},
     {TensorOpMode::logical_not, "not", 1}, {TensorOpMode::select, "select", 3}}};

constexpr std::array<const char*, 3> input_names = {"a", "b", "c"};

const Mode& entry_of(TensorOpMode mode) {
  const auto index = static_cast<size_t>(mode);
  if (index < modes.size()) return modes[index];
  throw Error(ErrorCode::invalid_argument, fmt::format("tensor_op: there is no mode {}", static_cast<int>(mode)),
              "give one of TensorOpMode");
}

// An input of some modes.
OperandDefinition further_input(std::string name) {
  return {.name = std::move(name),
          .role = Role::input,
          .printing = Printing::when_set,
          .extents = "as a",
          .left_out = "with a mode that does not read it",
          .summary = "an extent of 1 repeats",
          .dtypes = DTypes::floating | DTypes::integers,
          .repeats = true};
}

std::vector<std::string> tensor_op_mode_words() {
  std::vector<std::string> all;
  for (const Mode& mode : modes) all.emplace_back(mode.name);
  return all;
}

class TensorOpOperation final : public Operation {
 public:
  std::string_view name() const override { return "tensor_op"; }
  std::string_view summary() const override { return "element-wise arithmetic, comparison and selection"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("tensor {} {}", request.word("mode"), result_words(request));
  }
  std::string_view prologue_operand() const override { return "a"; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "a",
         .role = Role::input,
         .extents = "in each dimension y's or 1",
         .summary = "1 to 5 dimensions; an extent of 1 repeats",
         .dtypes = DTypes::floating | DTypes::integers,
         .repeats = true},
        further_input("b"),
        further_input("c"),
        in_place({.name = "y",
                  .role = Role::output,
                  .extents = "the longest of the inputs",
                  .left_out = "dtype of a",
                  .dtypes = DTypes::floating | DTypes::integers},
                 {"a", "b", "c"}),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"mode", std::string("add"), Printing::always, tensor_op_mode_words(), "what is computed"},
    };
    return definitions;
  }

  void complete_attributes(Request&) const override {}

  // The longest extents of the inputs, laid out as one that has them all.
  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* a = request.find("a");
    if (operand != "y" || a == nullptr) return std::nullopt;
    Ints extents = a->extents;
    for (const char* name : input_names) {
      const TensorSpec* input = request.find(name);
      for (size_t i = 0; input != nullptr && i < std::min(extents.size(), input->extents.size()); ++i) {
        if (extents[i] == 1) extents[i] = input->extents[i];
      }
    }
    for (const char* name : input_names) {
      const TensorSpec* input = request.find(name);
      if (input == nullptr || input->extents != extents) continue;
      TensorSpec y = laid_out_like(*input, extents);
      y.dtype = a->dtype;
      y.alignment = std::max(y.alignment, size_of(y.dtype));
      return y;
    }
    return TensorSpec::packed(a->dtype, extents, dimension_letters(a->rank()));
  }

  void validate(const Request& request) const override {
    require_rank(request, "y");
    const int wanted = inputs_of(tensor_op_mode_of(request));
    const std::string advice = fmt::format("{} takes {} of a, b and c", request.word("mode"), wanted);
    for (int i = 0; i < 3; ++i) {
      const char* const input = input_names[static_cast<size_t>(i)];
      require_if_read(request, input, i < wanted, advice);
      if (i < wanted) require_extents_or_ones(request, input, "y");
    }
  }

  Work work(const Request& request) const override { return pointwise_work(request, 1); }
};

}  // namespace

const Operation& tensor_op_operation() {
  static const TensorOpOperation definition;
  return definition;
}

std::string_view to_string(TensorOpMode mode) {
  return entry_of(mode).name;
}

const std::vector<TensorOpMode>& tensor_op_modes() {
  static const std::vector<TensorOpMode> all = [] {
    std::vector<TensorOpMode> list;
    for (const Mode& mode : modes) list.push_back(mode.mode);
    return list;
  }();
  return all;
}

int inputs_of(TensorOpMode mode) {
  return entry_of(mode).inputs;
}

TensorOp TensorOp::of(const Request& request) {
  TensorOp view;
  view.a = request.at("a");
  if (const TensorSpec* b = request.find("b")) view.b = *b;
  if (const TensorSpec* c = request.find("c")) view.c = *c;
  view.y = request.at("y");
  view.mode = tensor_op_mode_of(request);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request TensorOp::request() const {
  Request request;
  request.operation = "tensor_op";
  request.operands = {{"a", a}};
  if (b) request.operands.push_back({"b", *b});
  if (c) request.operands.push_back({"c", *c});
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  request.attributes = {{"mode", std::string(to_string(mode))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

}  // namespace kiln
