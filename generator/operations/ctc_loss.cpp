#include "kiln/generator/operations/ctc_loss.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"
#include "operations/words.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

constexpr std::array all_inputs = {CtcInput::scores, CtcInput::log_probabilities};
constexpr std::array all_infinite = {CtcInfinite::keep, CtcInfinite::zero};
constexpr int64_t most_labels = (int64_t{1} << 29) - 1;  // states are i32
constexpr int64_t most_classes = (int64_t{1} << 31) - 1;

void take_inputs(const Request& request, CtcLoss& view) {
  view.x = request.at("x");
  view.targets = request.at("targets");
  view.input_lengths = optional_operand(request, "input_lengths");
  view.target_lengths = optional_operand(request, "target_lengths");
  view.input = word_of(request, "input", all_inputs);
  view.blank = request.ints("blank").front();
  view.infinite = word_of(request, "infinite", all_infinite);
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
}

Request request_of(const CtcLoss& view, std::string operation) {
  Request request;
  request.operation = std::move(operation);
  request.attributes = {{"input", std::string(to_string(view.input))},
                        {"blank", Ints{view.blank}},
                        {"infinite", std::string(to_string(view.infinite))}};
  request.blend = view.blend;
  request.dynamic_batch = view.dynamic_batch;
  return request;
}

OperandDefinition lengths(std::string name, std::string left_out, std::string summary) {
  return {.name = std::move(name),
          .role = Role::input,
          .printing = Printing::when_set,
          .extents = "N",
          .left_out = std::move(left_out),
          .summary = std::move(summary),
          .dtypes = DTypes::only_i32};
}

// Operands of both directions, and behind them those of one.
std::vector<OperandDefinition> with_ctc_inputs(const std::vector<OperandDefinition>& others) {
  std::vector<OperandDefinition> definitions = {
      {.name = "x", .role = Role::input, .extents = "N T C", .summary = "scores of the classes at each step"},
      {.name = "targets",
       .role = Role::input,
       .extents = "N L",
       .summary = "the labels of each image, none of them the blank",
       .dtypes = DTypes::only_i32},
      lengths("input_lengths", "all steps count", "steps of each image, 0 to T; others count as the nearest of these"),
      lengths("target_lengths", "all labels count",
              "labels of each image, 0 to L; others count as the nearest of these"),
  };
  definitions.insert(definitions.end(), others.begin(), others.end());
  return definitions;
}

// Parts that the loss and its gradient share.
class CtcLossOperation : public Operation {
 public:
  bool adds_in_any_order() const final { return true; }

  const std::vector<AttributeDefinition>& attributes() const final {
    static const std::vector<AttributeDefinition> definitions = {
        {"input", std::string("scores"), Printing::when_set, words_of(all_inputs),
         "what x holds. scores: their softmax gives the probabilities. log_probabilities: logarithms of these"},
        {"blank", Ints{0}, Printing::always, {}, "the class that stands for no label"},
        {"infinite", std::string("keep"), Printing::when_set, words_of(all_infinite),
         "zero: a loss that is infinite, of too few steps for the labels or a class of probability 0, becomes 0, and "
         "so does its gradient"},
    };
    return definitions;
  }

  void complete_attributes(Request& request) const final { expand(request, "blank", 1, 1); }

  Work work(const Request& request) const final {
    CtcLoss view;
    take_inputs(request, view);
    Work work;
    const auto lines = static_cast<double>(view.images() * view.steps());
    // A softmax of each step, and for each state three exponentials and a logarithm.
    work.flops = lines * (4 * static_cast<double>(view.classes()) + 12 * static_cast<double>(view.states()));
    add_each_operand(request, work);
    return work;
  }

 protected:
  static OperandDefinition prefixes(Role role, std::string left_out, std::string summary) {
    return {.name = "prefixes",
            .role = role,
            .printing = role == Role::input ? Printing::always : Printing::when_set,
            .extents = "N T 2L+1",
            .left_out = std::move(left_out),
            .summary = std::move(summary),
            .dtypes = DTypes::only_f32,
            .has_minus_infinity = true};
  }

  static std::string words(const Request& request) {
    const TensorSpec& targets = request.at("targets");
    return fmt::format("CTC loss {}, {} labels{}", extents_words(request.at("x")), targets.extents[1],
                       operand_words(request, "x"));
  }

  // Refuses inputs from which the extents of outputs do not follow.
  static void check_inputs(const Request& request) {
    const TensorSpec &x = request.at("x"), &targets = request.at("targets");
    if (x.rank() != 3) {
      refuse(request, fmt::format("x has {} dimensions", x.rank()), "they are images, steps and classes");
    }
    if (targets.rank() != 2) {
      refuse(request, fmt::format("targets has {} dimensions", targets.rank()), "they are images and labels");
    }
    if (targets.extents[1] > most_labels || x.extents[1] > most_labels) {
      refuse(request, fmt::format("there are {} steps and {} labels", x.extents[1], targets.extents[1]),
             fmt::format("states are counted in i32: give at most {} of each", most_labels));
    }
    require_extents(request, "targets", targets, {x.extents[0], targets.extents[1]}, "N of x");
    const int64_t blank = request.ints("blank").front(), classes = x.extents[2];
    if (classes < 1 || classes > most_classes) {
      refuse(request, fmt::format("x has {} classes", classes), fmt::format("give 1 to {}", most_classes));
    }
    if (blank < 0 || blank >= classes) {
      refuse(request, fmt::format("blank={} is none of the {} classes", blank, classes),
             fmt::format("give 0 to {}", classes - 1));
    }
  }

  // Refuses the rest, of valid x and targets.
  static void check_others(const Request& request) {
    const Ints &x = request.at("x").extents, &targets = request.at("targets").extents;
    for (const char* operand : {"input_lengths", "target_lengths", "loss", "dloss"}) {
      require(request, operand, {x[0]}, "one for each image");
    }
    require(request, "prefixes", {x[0], x[1], 2 * targets[1] + 1}, "N and T of x, and 2 L + 1 states");
    require(request, "dx", x, "those of x");
  }

 private:
  static void require(const Request& request, std::string_view operand, const Ints& extents, std::string_view reason) {
    if (const TensorSpec* spec = request.find(operand)) require_extents(request, operand, *spec, extents, reason);
  }
};

class CtcLossForwardOperation final : public CtcLossOperation {
 public:
  std::string_view name() const override { return "ctc_loss_forward"; }
  std::string_view summary() const override {
    return "connectionist temporal classification: the loss of labels whose places are not known";
  }
  std::string short_form(const Request& request) const override { return words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const auto definitions = with_ctc_inputs({
        {.name = "loss",
         .role = Role::output,
         .extents = "N",
         .left_out = "f32 without gaps",
         .summary = "infinite where there are too few steps for the labels"},
        prefixes(Role::output, "it is not stored", "for the gradient: what is known of each state at each step"),
    });
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "loss" || request.find("x") == nullptr || request.find("targets") == nullptr) return std::nullopt;
    check_inputs(request);
    return TensorSpec::packed(DType::f32, {request.at("x").extents[0]}, dimension_letters(1));
  }

  void validate(const Request& request) const override {
    check_inputs(request);
    check_others(request);
  }
};

class CtcLossBackwardOperation final : public CtcLossOperation {
 public:
  std::string_view name() const override { return "ctc_loss_backward"; }
  std::string_view summary() const override { return "the gradient of ctc_loss_forward by the scores"; }
  std::string short_form(const Request& request) const override { return "gradient of " + words(request); }

  const std::vector<OperandDefinition>& operands() const override {
    static const auto definitions = with_ctc_inputs({
        {.name = "dloss",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "N",
         .left_out = "they are 1",
         .summary = "the gradient of loss"},
        prefixes(Role::input, "", "as ctc_loss_forward gave it"),
        {.name = "dx", .role = Role::output, .extents = "as x", .left_out = "dtype and layout of x"},
    });
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "dx" || request.find("x") == nullptr || request.find("targets") == nullptr) return std::nullopt;
    check_inputs(request);
    return laid_out_like(request.at("x"), request.at("x").extents);
  }

  void validate(const Request& request) const override {
    check_inputs(request);
    check_others(request);
  }
};

}  // namespace

std::string_view to_string(CtcInput input) {
  switch (input) {
    case CtcInput::scores:
      return "scores";
    case CtcInput::log_probabilities:
      return "log_probabilities";
  }
  return "?";
}

std::string_view to_string(CtcInfinite infinite) {
  switch (infinite) {
    case CtcInfinite::keep:
      return "keep";
    case CtcInfinite::zero:
      return "zero";
  }
  return "?";
}

const Operation& ctc_loss_forward_operation() {
  static const CtcLossForwardOperation definition;
  return definition;
}

const Operation& ctc_loss_backward_operation() {
  static const CtcLossBackwardOperation definition;
  return definition;
}

CtcLossForward CtcLossForward::of(const Request& request) {
  CtcLossForward view;
  take_inputs(request, view);
  view.loss = request.at("loss");
  view.prefixes = optional_operand(request, "prefixes");
  return view;
}

Request CtcLossForward::request() const {
  Request request = request_of(*this, "ctc_loss_forward");
  request.operands = {{"x", x}, {"targets", targets}};
  add_operand(request, "input_lengths", input_lengths);
  add_operand(request, "target_lengths", target_lengths);
  add_operand(request, "loss", loss);
  add_operand(request, "prefixes", prefixes);
  return finished(std::move(request));
}

CtcLossBackward CtcLossBackward::of(const Request& request) {
  CtcLossBackward view;
  take_inputs(request, view);
  view.dloss = optional_operand(request, "dloss");
  view.prefixes = request.at("prefixes");
  view.dx = request.at("dx");
  return view;
}

Request CtcLossBackward::request() const {
  Request request = request_of(*this, "ctc_loss_backward");
  request.operands = {{"x", x}, {"targets", targets}};
  add_operand(request, "input_lengths", input_lengths);
  add_operand(request, "target_lengths", target_lengths);
  add_operand(request, "dloss", dloss);
  request.operands.push_back({"prefixes", prefixes});
  add_operand(request, "dx", dx);
  return finished(std::move(request));
}

}  // namespace kiln
