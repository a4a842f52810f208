#include "kiln/generator/operations/cross_entropy.h"

#include <fmt/format.h>

#include <limits>

#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

LossReduction reduction_of(const Request& request) {
  const std::string& word = request.word("reduction");
  return word == "none" ? LossReduction::none : word == "sum" ? LossReduction::sum : LossReduction::mean;
}

// The extents of the rows: those of x without its classes.
Ints row_extents(const TensorSpec& x) {
  Ints extents = x.extents;
  extents.erase(extents.begin() + 1);
  return extents;
}

TensorSpec packed(DType dtype, const Ints& extents) {
  return TensorSpec::packed(dtype, extents, dimension_letters(static_cast<int>(extents.size())));
}

// Operands of both directions, and behind them those of one.
std::vector<OperandDefinition> with_inputs(const std::vector<OperandDefinition>& others) {
  std::vector<OperandDefinition> definitions = {
      {.name = "x", .role = Role::input, .extents = "N C and up to three spatial dimensions", .summary = "logits"},
      {.name = "targets",
       .role = Role::input,
       .extents = "as x without C",
       .left_out = "without gaps",
       .summary = "the classes",
       .dtypes = DTypes::only_i32},
      {.name = "weights",
       .role = Role::input,
       .batched = false,
       .printing = Printing::when_set,
       .extents = "C",
       .left_out = "they are 1",
       .summary = "a weight for each class",
       .dtypes = DTypes::only_f32},
  };
  definitions.insert(definitions.end(), others.begin(), others.end());
  return definitions;
}

class CrossEntropyOperation : public Operation {
 public:
  bool adds_in_any_order() const final { return true; }
  std::string_view prologue_operand() const final { return "x"; }

  const std::vector<AttributeDefinition>& attributes() const final {
    static const std::vector<AttributeDefinition> definitions = {
        {"reduction",
         std::string("mean"),
         Printing::always,
         {"none", "mean", "sum"},
         "none: one loss for each row. sum: the sum over the rows. mean: the sum divided by the number of rows that "
         "count or, with weights, by the sum of their targets' weights; NaN if no row counts"},
        {"ignore",
         Ints{-100},
         Printing::always,
         {},
         "rows with this target do not count: loss 0 and gradient 0, whatever the logits"},
        {"smoothing",
         std::string("none"),
         Printing::when_set,
         {"none", "any"},
         "any: the call gives the number smoothing"},
    };
    return definitions;
  }

  const std::vector<ScalarDefinition>& scalars() const final {
    static const std::vector<ScalarDefinition> definitions = {
        {"smoothing", 0, 0.125F, "e, the part of a target that all classes share, 0 to 1; read if smoothing=any"}};
    return definitions;
  }

  std::vector<ScalarRule> scalar_rules(const Request& request) const final {
    if (request.word("smoothing") != "any") return {};  // not read
    return {{0, 0, 1, "give a number from 0 to 1"}};
  }

  void complete_attributes(Request& request) const final { expand(request, "ignore", 1, 1); }

  std::string short_form(const Request& request) const override {
    return fmt::format("cross entropy {}{}, {}", extents_words(request.at("x")), operand_words(request, "x"),
                       request.word("reduction"));
  }

  Work work(const Request& request) const final {
    Work work = pointwise_work(request, 0);
    work.flops = 4.0 * static_cast<double>(request.at("x").elements());  // a maximum, an exponential, a sum, a quotient
    return work;
  }

 protected:
  static void check_logits(const Request& request) {
    const TensorSpec& x = request.at("x");
    if (x.rank() < 2) {
      refuse(request, fmt::format("x has {} dimensions", x.rank()), "it is N,C and up to three spatial dimensions");
    }
    if (x.extents[1] < 1) refuse(request, "x has no classes", "dimension 1 counts the classes");
  }

  static void check_rows(const Request& request) {
    check_logits(request);
    require_extents(request, "targets", request.at("targets"), row_extents(request.at("x")), "those of x without C");
    if (const TensorSpec* weights = request.find("weights")) {
      require_extents(request, "weights", *weights, {request.at("x").extents[1]}, "one a class");
    }
    const int64_t ignore = request.ints("ignore").front();
    if (ignore < std::numeric_limits<int32_t>::min() || ignore > std::numeric_limits<int32_t>::max()) {
      refuse(request, fmt::format("ignore={} is no i32", ignore), "targets are i32");
    }
  }

  // Refuses `each` unless losses are one a row, and `all` unless they are one.
  static void check_loss(const Request& request, std::string_view each, std::string_view all) {
    const bool none = reduction_of(request) == LossReduction::none;
    const std::string_view right = none ? each : all, wrong = none ? all : each;
    if (request.find(wrong) != nullptr) {
      refuse(request, fmt::format("there is an operand {} with reduction={}", wrong, request.word("reduction")),
             fmt::format("with that reduction it is {}", right));
    }
    const TensorSpec* spec = request.find(right);
    if (spec == nullptr) return;
    require_extents(request, right, *spec, none ? row_extents(request.at("x")) : Ints{1},
                    none ? "one a row" : "one for all rows");
  }
};

class CrossEntropyForwardOperation final : public CrossEntropyOperation {
 public:
  std::string_view name() const override { return "cross_entropy_forward"; }
  std::string_view summary() const override {
    return "the loss of classification: cross entropy of the softmax of logits";
  }

  const std::vector<OperandDefinition>& operands() const override {
    static const auto definitions = with_inputs({
        {.name = "losses",
         .role = Role::output,
         .printing = Printing::when_set,
         .extents = "as targets",
         .left_out = "f32 without gaps",
         .summary = "with reduction=none"},
        {.name = "loss",
         .role = Role::output,
         .batched = false,
         .printing = Printing::when_set,
         .extents = "1",
         .left_out = "f32",
         .summary = "with reduction=mean and sum"},
    });
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (x == nullptr || operand == "x") return std::nullopt;
    check_logits(request);
    const bool none = reduction_of(request) == LossReduction::none;
    if (operand == "targets") return packed(DType::i32, row_extents(*x));
    if (operand == "losses" && none) return packed(DType::f32, row_extents(*x));
    if (operand == "loss" && !none) return packed(DType::f32, {1});
    return std::nullopt;
  }

  void validate(const Request& request) const override {
    check_rows(request);
    check_loss(request, "losses", "loss");
  }
};

class CrossEntropyBackwardOperation final : public CrossEntropyOperation {
 public:
  std::string_view name() const override { return "cross_entropy_backward"; }
  std::string_view summary() const override { return "gradient of softmax and cross entropy in one"; }
  std::string short_form(const Request& request) const override {
    return "gradient of " + CrossEntropyOperation::short_form(request);
  }

  const std::vector<OperandDefinition>& operands() const override {
    static const auto definitions = with_inputs({
        {.name = "dlosses",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "as targets",
         .left_out = "they are 1",
         .summary = "with reduction=none"},
        {.name = "dloss",
         .role = Role::input,
         .batched = false,
         .printing = Printing::when_set,
         .extents = "1",
         .left_out = "it is 1",
         .summary = "with reduction=mean and sum"},
        in_place({.name = "dx", .role = Role::output, .extents = "as x", .left_out = "dtype and layout of x"}, {"x"}),
    });
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    const TensorSpec* x = request.find("x");
    if (x == nullptr || operand == "x") return std::nullopt;
    check_logits(request);
    if (operand == "targets") return packed(DType::i32, row_extents(*x));
    if (operand == "dx") return laid_out_like(*x, x->extents);
    return std::nullopt;
  }

  void validate(const Request& request) const override {
    check_rows(request);
    check_loss(request, "dlosses", "dloss");
    require_extents(request, "dx", request.at("dx"), request.at("x").extents, "those of x");
    if (request.dynamic_batch && reduction_of(request) == LossReduction::mean) {
      refuse(request, "the gradient of a mean depends on the whole batch, which cannot be dynamic",
             "fix the batch, or use reduction=sum and scale");
    }
  }
};

template <class View>
View rows_of(const Request& request) {
  View view;
  view.x = request.at("x");
  view.targets = request.at("targets");
  view.weights = optional_operand(request, "weights");
  view.smooths = request.word("smoothing") == "any";
  view.reduction = reduction_of(request);
  view.ignore = request.ints("ignore").front();
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request request_of(const CrossEntropy& view, std::string operation) {
  Request request;
  request.operation = std::move(operation);
  request.operands = {{"x", view.x}};
  if (!view.targets.extents.empty()) request.operands.push_back({"targets", view.targets});
  if (view.weights) request.operands.push_back({"weights", *view.weights});
  request.attributes = {{"reduction", std::string(to_string(view.reduction))},
                        {"ignore", Ints{view.ignore}},
                        {"smoothing", std::string(view.smooths ? "any" : "none")}};
  request.blend = view.blend;
  request.dynamic_batch = view.dynamic_batch;
  return request;
}

}  // namespace

std::string_view to_string(LossReduction reduction) {
  switch (reduction) {
    case LossReduction::none:
      return "none";
    case LossReduction::mean:
      return "mean";
    case LossReduction::sum:
      return "sum";
  }
  return "?";
}

const Operation& cross_entropy_forward_operation() {
  static const CrossEntropyForwardOperation definition;
  return definition;
}

const Operation& cross_entropy_backward_operation() {
  static const CrossEntropyBackwardOperation definition;
  return definition;
}

CrossEntropyForward CrossEntropyForward::of(const Request& request) {
  auto view = rows_of<CrossEntropyForward>(request);
  view.loss = result_of(request).spec;
  return view;
}

Request CrossEntropyForward::request() const {
  Request request = request_of(*this, "cross_entropy_forward");
  if (!loss.extents.empty()) {
    request.operands.push_back({reduction == LossReduction::none ? "losses" : "loss", loss});
  }
  return finished(std::move(request));
}

CrossEntropyBackward CrossEntropyBackward::of(const Request& request) {
  auto view = rows_of<CrossEntropyBackward>(request);
  view.dloss = optional_operand(request, view.reduction == LossReduction::none ? "dlosses" : "dloss");
  view.dx = request.at("dx");
  return view;
}

Request CrossEntropyBackward::request() const {
  Request request = request_of(*this, "cross_entropy_backward");
  if (dloss) request.operands.push_back({reduction == LossReduction::none ? "dlosses" : "dloss", *dloss});
  if (!dx.extents.empty()) request.operands.push_back({"dx", dx});
  return finished(std::move(request));
}

std::optional<ClassTargets> class_targets(const Request& request, std::string_view operand) {
  if (operand != "targets" || !request.operation.starts_with("cross_entropy_")) return std::nullopt;
  return ClassTargets{request.at("x").extents[1], request.ints("ignore").front()};
}

bool is_class_weights(const Request& request, std::string_view operand) {
  return operand == "weights" && request.operation.starts_with("cross_entropy_");
}

}  // namespace kiln
