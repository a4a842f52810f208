#include <fmt/format.h>

#include <limits>
#include <utility>

#include "kiln/generator/operations/recurrent.h"
#include "operations/operations.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

RecurrentCell cell_of(const Request& request) {
  const std::string& word = request.word("cell");
  return word == "lstm"   ? RecurrentCell::lstm
         : word == "gru"  ? RecurrentCell::gru
         : word == "tanh" ? RecurrentCell::tanh
                          : RecurrentCell::relu;
}

RecurrentDirection direction_of(const Request& request) {
  const std::string& word = request.word("direction");
  return word == "forward"   ? RecurrentDirection::forward
         : word == "reverse" ? RecurrentDirection::reverse
                             : RecurrentDirection::both;
}

OperandDefinition weights_of_steps(std::string name, std::string extents, std::string summary) {
  return {.name = std::move(name),
          .role = Role::input,
          .batched = false,
          .printing = Printing::when_set,
          .extents = std::move(extents),
          .left_out = "it is 0",
          .summary = std::move(summary)};
}

OperandDefinition state(std::string name, Role role, std::string left_out, std::string summary) {
  return {.name = std::move(name),
          .role = role,
          .printing = Printing::when_set,
          .extents = "N D H",
          .left_out = std::move(left_out),
          .summary = std::move(summary)};
}

class RecurrentForwardOperation final : public Operation {
 public:
  std::string_view name() const override { return "recurrent_forward"; }
  std::string_view summary() const override { return "the steps in time of a recurrent layer: LSTM, GRU, plain cells"; }
  std::string short_form(const Request& request) const override {
    const std::string& direction = request.word("direction");
    return fmt::format("{} {}{}{}", request.word("cell"), extents_words(request.at("y")),
                       direction == "forward" ? "" : ", " + direction, operand_words(request, "y"));
  }
  bool adds_in_any_order() const override { return true; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "gates",
         .role = Role::input,
         .extents = "N T D GH",
         .summary = "products of the inputs with the input weights, and their bias: images, steps, directions, and the "
                    "H elements of each of G gates (lstm 4, gru 3, else 1)"},
        {.name = "r", .role = Role::input, .batched = false, .extents = "D GH H", .summary = "the recurrent weights"},
        weights_of_steps("r_bias", "D GH", "added to the products with r"),
        weights_of_steps("peepholes", "D 3H", "lstm: weights of the cell state in the input, output and forget gates"),
        state("h0", Role::input, "it is 0", "the state before the first step"),
        state("c0", Role::input, "it is 0", "lstm: the cell state before the first step"),
        {.name = "lengths",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "N",
         .left_out = "all steps count",
         .summary = "steps of each image, 0 to T; others count as the nearest of these",
         .dtypes = DTypes::only_i32},
        {.name = "y",
         .role = Role::output,
         .extents = "N T D H",
         .left_out = "dtype of gates, without gaps",
         .summary = "the state behind each step; 0 behind an image's length"},
        state("hn", Role::output, "it is not stored", "the state behind the last step that counts"),
        state("cn", Role::output, "it is not stored", "lstm: the cell state there"),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> definitions = {
        {"cell", std::string("lstm"), Printing::always, {"lstm", "gru", "tanh", "relu"}, "what a step computes"},
        {"direction",
         std::string("forward"),
         Printing::always,
         {"forward", "reverse", "both"},
         "reverse begins at the last step; both: D is 2, forward and then reverse"},
        {"reset",
         std::string("after"),
         Printing::when_set,
         {"after", "before"},
         "gru: the reset gate stands behind the product with r, as in PyTorch, or in front of it, as in ONNX"},
        {"order",
         std::string("ifco"),
         Printing::when_set,
         {"ifco", "iofc"},
         "order of the gates. ifco: input, forget, cell, output; gru: reset, update, new, as in PyTorch. iofc: input, "
         "output, forget, cell; gru: update, reset, new, as in ONNX"},
    };
    return definitions;
  }

  void complete_attributes(Request&) const override {}

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "y" || request.find("gates") == nullptr || request.find("r") == nullptr) return std::nullopt;
    check_gates(request);
    const TensorSpec& gates = request.at("gates");
    Ints extents = gates.extents;
    extents.back() = request.at("r").extents.back();
    return TensorSpec::packed(gates.dtype, std::move(extents), dimension_letters(4));
  }

  void validate(const Request& request) const override {
    check_gates(request);
    const Ints& gates = request.at("gates").extents;
    const int64_t images = gates[0], directions = gates[2], rows = gates[3], hidden = request.at("r").extents[2];
    require(request, "r", {directions, rows, hidden}, "D, GH and H of gates");
    require(request, "r_bias", {directions, rows}, "D and GH of gates");
    require(request, "peepholes", {directions, 3 * hidden}, "D and three times H");
    for (const char* state : {"h0", "c0", "hn", "cn"}) {
      require(request, state, {images, directions, hidden}, "N and D of gates, and H");
    }
    require(request, "lengths", {images}, "one for each image");
    require(request, "y", {images, gates[1], directions, hidden}, "N, T and D of gates, and H");
    check_cell(request);
  }

  Work work(const Request& request) const override {
    const TensorSpec &gates = request.at("gates"), &r = request.at("r");
    Work work;
    work.flops = 2 * static_cast<double>(gates.elements()) * static_cast<double>(r.extents[2]);
    for (const Operand& operand : request.operands) {
      (is_written(request, operand.name) ? work.write_bytes : work.read_bytes) += bytes_of(operand.spec);
    }
    if (request.blend.beta != Scale::zero) work.read_bytes += bytes_of(request.at("y"));
    return work;
  }

 private:
  // What the extents of y follow from.
  static void check_gates(const Request& request) {
    const TensorSpec &gates = request.at("gates"), &r = request.at("r");
    if (gates.rank() != 4) {
      refuse(request, fmt::format("gates has {} dimensions", gates.rank()), "it is N,T,D,GH, also with one direction");
    }
    if (r.rank() != 3) refuse(request, fmt::format("r has {} dimensions", r.rank()), "it is D,GH,H");
    const int64_t of_cell = gates_of(cell_of(request)), directions = directions_of(direction_of(request));
    const int64_t hidden = r.extents[2];
    if (hidden < 1) refuse(request, "r has H 0", "a state has at least one element");
    if (hidden > std::numeric_limits<int32_t>::max() / 4) {
      refuse(request, fmt::format("r has H {}", hidden), "a state has at most 2^29 - 1 elements");
    }
    if (gates.extents[1] < 1) refuse(request, "gates has no steps", "T is at least 1");
    if (gates.extents[2] != directions) {
      refuse(request, fmt::format("gates has D {} with direction={}", gates.extents[2], request.word("direction")),
             "D is 2 with direction=both, else 1");
    }
    if (gates.extents[3] != of_cell * hidden) {
      refuse(request, fmt::format("gates has GH {}, and r has H {}", gates.extents[3], hidden),
             fmt::format("with cell={} GH is {} times H", request.word("cell"), of_cell));
    }
  }

  static void require(const Request& request, std::string_view operand, const Ints& extents, std::string_view reason) {
    if (const TensorSpec* spec = request.find(operand)) require_extents(request, operand, *spec, extents, reason);
  }

  static void check_cell(const Request& request) {
    const RecurrentCell cell = cell_of(request);
    for (const char* operand : {"peepholes", "c0", "cn"}) {
      if (cell != RecurrentCell::lstm && request.find(operand) != nullptr) {
        refuse(request, fmt::format("there is {} with cell={}", operand, request.word("cell")),
               "only an lstm has a cell state: leave it out");
      }
    }
    if (cell != RecurrentCell::gru && request.word("reset") != "after") {
      refuse(request, fmt::format("reset={} with cell={}", request.word("reset"), request.word("cell")),
             "only a gru has a reset gate: leave it out");
    }
    if (cell != RecurrentCell::gru && cell != RecurrentCell::lstm && request.word("order") != "ifco") {
      refuse(request, fmt::format("order={} with cell={}", request.word("order"), request.word("cell")),
             "this cell has no gates to order: leave it out");
    }
  }
};

}  // namespace

std::string_view to_string(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm:
      return "lstm";
    case RecurrentCell::gru:
      return "gru";
    case RecurrentCell::tanh:
      return "tanh";
    case RecurrentCell::relu:
      return "relu";
  }
  return "?";
}

std::string_view to_string(RecurrentDirection direction) {
  switch (direction) {
    case RecurrentDirection::forward:
      return "forward";
    case RecurrentDirection::reverse:
      return "reverse";
    case RecurrentDirection::both:
      return "both";
  }
  return "?";
}

std::string_view to_string(RecurrentReset reset) {
  switch (reset) {
    case RecurrentReset::after:
      return "after";
    case RecurrentReset::before:
      return "before";
  }
  return "?";
}

std::string_view to_string(RecurrentOrder order) {
  switch (order) {
    case RecurrentOrder::ifco:
      return "ifco";
    case RecurrentOrder::iofc:
      return "iofc";
  }
  return "?";
}

int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

int64_t directions_of(RecurrentDirection direction) {
  return direction == RecurrentDirection::both ? 2 : 1;
}

const Operation& recurrent_forward_operation() {
  static const RecurrentForwardOperation definition;
  return definition;
}

RecurrentForward RecurrentForward::of(const Request& request) {
  RecurrentForward view;
  view.gates = request.at("gates");
  view.r = request.at("r");
  view.y = request.at("y");
  view.r_bias = optional_operand(request, "r_bias");
  view.peepholes = optional_operand(request, "peepholes");
  view.h0 = optional_operand(request, "h0");
  view.c0 = optional_operand(request, "c0");
  view.lengths = optional_operand(request, "lengths");
  view.hn = optional_operand(request, "hn");
  view.cn = optional_operand(request, "cn");
  view.cell = cell_of(request);
  view.direction = direction_of(request);
  view.reset = request.word("reset") == "after" ? RecurrentReset::after : RecurrentReset::before;
  view.order = request.word("order") == "ifco" ? RecurrentOrder::ifco : RecurrentOrder::iofc;
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request RecurrentForward::request() const {
  Request request;
  request.operation = "recurrent_forward";
  request.operands = {{"gates", gates}, {"r", r}};
  const auto add = [&](const char* name, const std::optional<TensorSpec>& spec) {
    if (spec) request.operands.push_back({name, *spec});
  };
  add("r_bias", r_bias);
  add("peepholes", peepholes);
  add("h0", h0);
  add("c0", c0);
  add("lengths", lengths);
  if (!y.extents.empty()) request.operands.push_back({"y", y});
  add("hn", hn);
  add("cn", cn);
  request.attributes = {{"cell", std::string(to_string(cell))},
                        {"direction", std::string(to_string(direction))},
                        {"reset", std::string(to_string(reset))},
                        {"order", std::string(to_string(order))}};
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

bool is_recurrent_weights(const Request& request, std::string_view operand) {
  return request.operation == "recurrent_forward" && operand == "r";
}

std::optional<int64_t> most_recurrent_steps(const Request& request, std::string_view operand) {
  if (request.operation != "recurrent_forward" || operand != "lengths") return std::nullopt;
  return request.at("gates").extents[1];
}

}  // namespace kiln
