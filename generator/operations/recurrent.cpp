#include "kiln/generator/operations/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
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

constexpr std::array all_cells = {RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::tanh, RecurrentCell::relu};
constexpr std::array all_directions = {RecurrentDirection::forward, RecurrentDirection::reverse,
                                       RecurrentDirection::both};
constexpr std::array all_resets = {RecurrentReset::after, RecurrentReset::before};
constexpr std::array all_orders = {RecurrentOrder::ifco, RecurrentOrder::iofc};

RecurrentCell cell_of(const Request& request) {
  return word_of(request, "cell", all_cells);
}

int64_t directions_of(const Request& request) {
  return directions_of(word_of(request, "direction", all_directions));
}

Recurrence recurrence_of(const Request& request) {
  return {.cell = cell_of(request),
          .direction = word_of(request, "direction", all_directions),
          .reset = word_of(request, "reset", all_resets),
          .order = word_of(request, "order", all_orders)};
}

Request request_of(const Recurrence& recurrence, std::string operation) {
  Request request;
  request.operation = std::move(operation);
  request.attributes = {{"cell", std::string(to_string(recurrence.cell))},
                        {"direction", std::string(to_string(recurrence.direction))},
                        {"reset", std::string(to_string(recurrence.reset))},
                        {"order", std::string(to_string(recurrence.order))}};
  return request;
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

// Parts that a layer and its gradient share.
class RecurrentOperation : public Operation {
 public:
  bool adds_in_any_order() const final { return true; }

  const std::vector<AttributeDefinition>& attributes() const final {
    static const std::vector<AttributeDefinition> definitions = {
        {"cell", std::string("lstm"), Printing::always, words_of(all_cells), "what a step computes"},
        {"direction", std::string("forward"), Printing::always, words_of(all_directions),
         "reverse begins at the last step; both: D is 2, forward and then reverse"},
        {"reset", std::string("after"), Printing::when_set, words_of(all_resets),
         "gru: the reset gate stands behind the product with r, as in PyTorch, or in front of it, as in ONNX"},
        {"order", std::string("ifco"), Printing::when_set, words_of(all_orders),
         "order of the gates. ifco: input, forget, cell, output; gru: reset, update, new, as in PyTorch. iofc: input, "
         "output, forget, cell; gru: update, reset, new, as in ONNX"},
    };
    return definitions;
  }

  void complete_attributes(Request&) const final {}

  Work work(const Request& request) const final {
    const TensorSpec &r = request.at("r"), &result = result_of(request).spec;
    const int64_t lines = result.extents[0] * result.extents[1] * result.extents[2];
    Work work;
    work.flops = 2 * static_cast<double>(lines) * static_cast<double>(r.extents[1] * r.extents[2]);
    add_each_operand(request, work);
    return work;
  }

 protected:
  static std::string words(const Request& request, std::string_view operand) {
    const std::string& direction = request.word("direction");
    return fmt::format("{} {}{}{}", request.word("cell"), extents_words(request.at(operand)),
                       direction == "forward" ? "" : ", " + direction, operand_words(request, operand));
  }

  // The lengths of a layer's images.
  static OperandDefinition lengths() {
    return {.name = "lengths",
            .role = Role::input,
            .printing = Printing::when_set,
            .extents = "N",
            .left_out = "all steps count",
            .summary = "steps of each image, 0 to T; others count as the nearest of these",
            .dtypes = DTypes::only_i32};
  }

  // Refuses extents from which those of outputs do not follow: `steps` is N,T,D and then `parts` times H.
  static void check_steps(const Request& request, std::string_view steps, std::string_view letters, int64_t parts) {
    const TensorSpec &spec = request.at(steps), &r = request.at("r");
    if (spec.rank() != 4) {
      refuse(request, fmt::format("{} has {} dimensions", steps, spec.rank()),
             fmt::format("it is N,T,D,{}, also with one direction", letters));
    }
    if (r.rank() != 3) refuse(request, fmt::format("r has {} dimensions", r.rank()), "it is D,GH,H");
    const int64_t directions = directions_of(request), hidden = r.extents[2];
    if (hidden < 1) refuse(request, "r has H 0", "a state has at least one element");
    if (hidden > most_hidden) {
      refuse(request, fmt::format("r has H {}", hidden), fmt::format("a state has at most {} elements", most_hidden));
    }
    if (spec.extents[1] < 1) refuse(request, fmt::format("{} has no steps", steps), "T is at least 1");
    if (spec.extents[1] > std::numeric_limits<int32_t>::max()) {
      refuse(request, fmt::format("{} has T {}", steps, spec.extents[1]), "lengths are i32: T is at most 2^31 - 1");
    }
    if (spec.extents[2] != directions) {
      refuse(request, fmt::format("{} has D {} with direction={}", steps, spec.extents[2], request.word("direction")),
             "D is 2 with direction=both, else 1");
    }
    if (spec.extents[3] != parts * hidden) {
      refuse(request, fmt::format("{} has {} {}, and r has H {}", steps, letters, spec.extents[3], hidden),
             parts == 1 ? "they have to be equal"
                        : fmt::format("with cell={} {} is {} times H", request.word("cell"), letters, parts));
    }
  }

  static void require(const Request& request, std::string_view operand, const Ints& extents, std::string_view reason) {
    if (const TensorSpec* spec = request.find(operand)) require_extents(request, operand, *spec, extents, reason);
  }

  static void check_weights(const Request& request) {
    const Ints& r = request.at("r").extents;
    const int64_t directions = directions_of(request), hidden = r[2];
    require(request, "r", {directions, gates_of(cell_of(request)) * hidden, hidden}, "D, GH and H");
    require(request, "peepholes", {directions, 3 * hidden}, "D and three times H");
  }

  static void check_attributes(const Request& request) {
    const RecurrentCell cell = cell_of(request);
    if (cell != RecurrentCell::gru && request.word("reset") != "after") {
      refuse(request, fmt::format("reset={} with cell={}", request.word("reset"), request.word("cell")),
             "only a gru has a reset gate: leave it out");
    }
    if (cell != RecurrentCell::gru && cell != RecurrentCell::lstm && request.word("order") != "ifco") {
      refuse(request, fmt::format("order={} with cell={}", request.word("order"), request.word("cell")),
             "this cell has no gates to order: leave it out");
    }
  }

  // Refuses operands that only the cell of that name has.
  static void only_of(const Request& request, std::string_view cell, std::initializer_list<std::string_view> operands) {
    for (const std::string_view operand : operands) {
      if (request.word("cell") == cell || request.find(operand) == nullptr) continue;
      refuse(request, fmt::format("there is {} with cell={}", operand, request.word("cell")),
             fmt::format("only cell={} has it: leave it out", cell));
    }
  }

  static constexpr int64_t most_hidden = (int64_t{1} << 28) - 1;  // numbers of rows are i32
};

class RecurrentForwardOperation final : public RecurrentOperation {
 public:
  std::string_view name() const override { return "recurrent_forward"; }
  std::string_view summary() const override { return "the steps in time of a recurrent layer: LSTM, GRU, plain cells"; }
  std::string short_form(const Request& request) const override { return words(request, "y"); }

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
        lengths(),
        {.name = "y",
         .role = Role::output,
         .extents = "N T D H",
         .left_out = "dtype of gates, without gaps",
         .summary = "the state behind each step; 0 behind an image's length"},
        state("hn", Role::output, "it is not stored", "the state behind the last step that counts"),
        state("cn", Role::output, "it is not stored", "lstm: the cell state there"),
        {.name = "saved",
         .role = Role::output,
         .printing = Printing::when_set,
         .extents = "N T D SH",
         .left_out = "it is not stored",
         .summary = "for the gradient, H elements each. lstm (S is 5): the gates in their order, then the cell state. "
                    "gru (4): the gates, then the product of the new gate. Others (1): the state"},
    };
    return definitions;
  }

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
    check_weights(request);
    const Ints& gates = request.at("gates").extents;
    const int64_t images = gates[0], directions = gates[2], hidden = request.at("r").extents[2];
    require(request, "r_bias", {directions, gates[3]}, "D and GH of gates");
    for (const char* state : {"h0", "c0", "hn", "cn"}) {
      require(request, state, {images, directions, hidden}, "N and D of gates, and H");
    }
    require(request, "lengths", {images}, "one for each image");
    require(request, "y", {images, gates[1], directions, hidden}, "N, T and D of gates, and H");
    const int64_t parts = saved_parts_of(cell_of(request));
    require(request, "saved", {images, gates[1], directions, parts * hidden}, "N, T and D of gates, and SH");
    check_attributes(request);
    only_of(request, "lstm", {"peepholes", "c0", "cn"});
  }

 private:
  static void check_gates(const Request& request) { check_steps(request, "gates", "GH", gates_of(cell_of(request))); }
};

class RecurrentBackwardOperation final : public RecurrentOperation {
 public:
  std::string_view name() const override { return "recurrent_backward"; }
  std::string_view summary() const override { return "gradient of the steps of a recurrent layer"; }
  std::string short_form(const Request& request) const override { return "gradient of " + words(request, "dy"); }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "dy", .role = Role::input, .extents = "N T D H", .summary = "the gradient of y"},
        {.name = "r", .role = Role::input, .batched = false, .extents = "D GH H", .summary = "the recurrent weights"},
        {.name = "saved", .role = Role::input, .extents = "N T D SH", .summary = "as recurrent_forward saved it"},
        {.name = "y",
         .role = Role::input,
         .printing = Printing::when_set,
         .extents = "N T D H",
         .left_out = "the cell is no gru",
         .summary = "gru: the states, as recurrent_forward gave them without an epilogue"},
        weights_of_steps("peepholes", "D 3H", "lstm: as in the forward"),
        state("h0", Role::input, "it is 0", "gru: as in the forward"),
        state("c0", Role::input, "it is 0", "lstm: as in the forward"),
        lengths(),
        state("dhn", Role::input, "it is 0", "the gradient of hn"),
        state("dcn", Role::input, "it is 0", "lstm: the gradient of cn"),
        {.name = "dgates",
         .role = Role::output,
         .extents = "N T D GH",
         .left_out = "dtype of dy, without gaps",
         .summary = "the gradient of gates; 0 behind an image's length"},
        {.name = "dproducts",
         .role = Role::output,
         .printing = Printing::when_set,
         .extents = "N T D GH",
         .left_out = "it is not stored",
         .summary = "gru with reset=after: the gradient of r h + r_bias. Everywhere else that is dgates"},
        state("dh0", Role::output, "it is not stored", "the gradient of h0"),
        state("dc0", Role::output, "it is not stored", "lstm: the gradient of c0"),
    };
    return definitions;
  }

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "dgates" || request.find("dy") == nullptr || request.find("r") == nullptr) return std::nullopt;
    check_gradient(request);
    const TensorSpec& dy = request.at("dy");
    Ints extents = dy.extents;
    extents.back() *= gates_of(cell_of(request));
    return TensorSpec::packed(dy.dtype, std::move(extents), dimension_letters(4));
  }

  void validate(const Request& request) const override {
    check_gradient(request);
    check_weights(request);
    const RecurrentCell cell = cell_of(request);
    const Ints& dy = request.at("dy").extents;
    const int64_t images = dy[0], steps = dy[1], directions = dy[2], hidden = dy[3];
    require(request, "saved", {images, steps, directions, saved_parts_of(cell) * hidden}, "N, T and D of dy, and SH");
    require(request, "y", dy, "those of dy");
    for (const char* state : {"h0", "c0", "dhn", "dcn", "dh0", "dc0"}) {
      require(request, state, {images, directions, hidden}, "N, D and H of dy");
    }
    require(request, "lengths", {images}, "one for each image");
    for (const char* gradient : {"dgates", "dproducts"}) {
      require(request, gradient, {images, steps, directions, gates_of(cell) * hidden}, "N, T and D of dy, and GH");
    }
    check_attributes(request);
    only_of(request, "lstm", {"peepholes", "c0", "dcn", "dc0"});
    only_of(request, "gru", {"y", "h0", "dproducts"});
    if (cell == RecurrentCell::gru && request.find("y") == nullptr) {
      refuse(request, "there is no y with cell=gru", "give the states that recurrent_forward gave");
    }
    if (request.find("dproducts") != nullptr && request.word("reset") != "after") {
      refuse(request, "there is dproducts with reset=before", "it is dgates there: leave it out");
    }
  }

 private:
  static void check_gradient(const Request& request) { check_steps(request, "dy", "H", 1); }
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

int64_t saved_parts_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 5 : cell == RecurrentCell::gru ? 4 : 1;
}

int64_t directions_of(RecurrentDirection direction) {
  return direction == RecurrentDirection::both ? 2 : 1;
}

const Operation& recurrent_forward_operation() {
  static const RecurrentForwardOperation definition;
  return definition;
}

const Operation& recurrent_backward_operation() {
  static const RecurrentBackwardOperation definition;
  return definition;
}

RecurrentForward RecurrentForward::of(const Request& request) {
  RecurrentForward view;
  static_cast<Recurrence&>(view) = recurrence_of(request);
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
  view.saved = optional_operand(request, "saved");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request RecurrentForward::request() const {
  Request request = request_of(*this, "recurrent_forward");
  request.operands = {{"gates", gates}, {"r", r}};
  add_operand(request, "r_bias", r_bias);
  add_operand(request, "peepholes", peepholes);
  add_operand(request, "h0", h0);
  add_operand(request, "c0", c0);
  add_operand(request, "lengths", lengths);
  add_operand(request, "y", y);
  add_operand(request, "hn", hn);
  add_operand(request, "cn", cn);
  add_operand(request, "saved", saved);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

RecurrentBackward RecurrentBackward::of(const Request& request) {
  RecurrentBackward view;
  static_cast<Recurrence&>(view) = recurrence_of(request);
  view.dy = request.at("dy");
  view.r = request.at("r");
  view.saved = request.at("saved");
  view.dgates = request.at("dgates");
  view.y = optional_operand(request, "y");
  view.peepholes = optional_operand(request, "peepholes");
  view.h0 = optional_operand(request, "h0");
  view.c0 = optional_operand(request, "c0");
  view.lengths = optional_operand(request, "lengths");
  view.dhn = optional_operand(request, "dhn");
  view.dcn = optional_operand(request, "dcn");
  view.dproducts = optional_operand(request, "dproducts");
  view.dh0 = optional_operand(request, "dh0");
  view.dc0 = optional_operand(request, "dc0");
  view.blend = request.blend;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request RecurrentBackward::request() const {
  Request request = request_of(*this, "recurrent_backward");
  request.operands = {{"dy", dy}, {"r", r}, {"saved", saved}};
  add_operand(request, "y", y);
  add_operand(request, "peepholes", peepholes);
  add_operand(request, "h0", h0);
  add_operand(request, "c0", c0);
  add_operand(request, "lengths", lengths);
  add_operand(request, "dhn", dhn);
  add_operand(request, "dcn", dcn);
  add_operand(request, "dgates", dgates);
  add_operand(request, "dproducts", dproducts);
  add_operand(request, "dh0", dh0);
  add_operand(request, "dc0", dc0);
  request.blend = blend;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

std::optional<int64_t> recurrent_terms(const Request& request, std::string_view operand) {
  if (!request.operation.starts_with("recurrent_") || operand != "r") return std::nullopt;
  return request.at("r").extents[request.operation == "recurrent_forward" ? 2 : 1];
}

std::optional<int64_t> most_recurrent_steps(const Request& request, std::string_view operand) {
  if (!request.operation.starts_with("recurrent_") || operand != "lengths") return std::nullopt;
  return result_of(request).spec.extents[1];
}

}  // namespace kiln
