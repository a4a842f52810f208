// Recurrent layers: LSTM, GRU and RNN. The products of all steps with the input weights are one product of matrices;
// the rest is recurrent_forward.
#include "kiln/generator/operations/recurrent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "kiln/base/printable.h"
#include "onnx/products.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// Inputs of the nodes.
enum Input : int { x_input, w_input, r_input, b_input, lengths_input, h0_input, c0_input, peepholes_input };

/// A layer, as its attributes and extents say.
struct Layer {
  RecurrentForward recurrent;
  bool batch_first = false;
  int64_t images = 0, steps = 0, features = 0, directions = 0, rows = 0, hidden = 0;
};

RecurrentDirection direction_of(const Node& node) {
  const std::string word = node.attributes().word("direction", "forward");
  if (word == "forward") return RecurrentDirection::forward;
  if (word == "reverse") return RecurrentDirection::reverse;
  if (word == "bidirectional") return RecurrentDirection::both;
  node.fail(fmt::format("direction is '{}', expected forward, reverse or bidirectional", printable_name(word)));
}

/// The functions of one direction, in small letters; refuses others for the second one.
std::vector<std::string> functions_of(const Node& node, std::vector<std::string> usual, int64_t directions) {
  std::vector<std::string> words = node.attributes().words("activations").value_or(std::vector<std::string>());
  if (words.empty()) return usual;
  if (words.size() != usual.size() * static_cast<size_t>(directions)) {
    node.fail(fmt::format("has {} activations, expected {} for each of {} directions", words.size(), usual.size(),
                          directions));
  }
  for (std::string& word : words) {
    std::transform(word.begin(), word.end(), word.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  }
  const auto second = words.begin() + static_cast<std::ptrdiff_t>(usual.size());
  if (second != words.end() && !std::equal(second, words.end(), words.begin())) {
    refuse("its directions have different activations");
  }
  words.erase(second, words.end());
  return words;
}

RecurrentCell cell_of(const Node& node, int64_t directions) {
  const bool is_lstm = node.type() == "LSTM", is_plain = node.type() == "RNN";
  std::vector<std::string> usual = {"sigmoid", "tanh"};
  if (is_lstm) usual.push_back("tanh");
  if (is_plain) usual = {"tanh"};
  const std::vector<std::string> functions = functions_of(node, usual, directions);
  if (is_plain && functions.front() == "relu") return RecurrentCell::relu;
  if (functions != usual) {
    refuse(fmt::format("its activations are {}, and {} {} covered",
                       printable_name(fmt::format("{}", fmt::join(functions, ", "))),
                       is_plain ? "tanh or relu" : fmt::format("{}", fmt::join(usual, ", ")), is_plain ? "is" : "are"));
  }
  return is_lstm ? RecurrentCell::lstm : is_plain ? RecurrentCell::tanh : RecurrentCell::gru;
}

void require_extents(const Node& node, int input, const Extents& expected, std::string_view what) {
  if (!node.has(input) || node.extents(input) == expected) return;
  node.fail(fmt::format("its {} (input {}) have extents {}, expected {}", what, input,
                        fmt::join(node.extents(input), "x"), fmt::join(expected, "x")));
}

Layer layer_of(const Node& node) {
  if (node.attributes().has("clip")) refuse("it clips what the activations are given (clip)");
  if (node.attributes().integer("input_forget", 0) != 0) refuse("its input and forget gates are one (input_forget)");
  Layer layer;
  if (node.rank(x_input) != 3 || node.rank(w_input) != 3 || node.rank(r_input) != 3) {
    node.fail("its input and weights have to have three dimensions each");
  }
  layer.batch_first = node.attributes().integer("layout", 0) != 0;
  RecurrentForward& recurrent = layer.recurrent;
  recurrent.direction = direction_of(node);
  layer.directions = directions_of(recurrent.direction);
  recurrent.cell = cell_of(node, layer.directions);
  recurrent.order = recurrent.cell == RecurrentCell::lstm || recurrent.cell == RecurrentCell::gru
                        ? RecurrentOrder::iofc
                        : RecurrentOrder::ifco;
  if (recurrent.cell == RecurrentCell::gru && node.attributes().integer("linear_before_reset", 0) == 0) {
    recurrent.reset = RecurrentReset::before;
  }
  const Extents &x = node.extents(x_input), &r = node.extents(r_input);
  layer.steps = x[layer.batch_first ? 1 : 0];
  layer.images = x[layer.batch_first ? 0 : 1];
  layer.features = x[2];
  layer.hidden = r[2];
  layer.rows = node.multiply(gates_of(recurrent.cell), layer.hidden);
  if (layer.steps < 1) refuse("it has no steps");
  if (layer.hidden < 1) node.fail("its states have no elements");
  const int64_t given = node.attributes().integer("hidden_size", layer.hidden);
  if (given != layer.hidden)
    node.fail(fmt::format("hidden_size is {}, and its weights are for {}", given, layer.hidden));
  require_extents(node, w_input, {layer.directions, layer.rows, layer.features}, "input weights");
  require_extents(node, r_input, {layer.directions, layer.rows, layer.hidden}, "recurrent weights");
  require_extents(node, b_input, {layer.directions, node.multiply(2, layer.rows)}, "biases");
  require_extents(node, lengths_input, {layer.images}, "sequence lengths");
  const Extents state = layer.batch_first ? Extents{layer.images, layer.directions, layer.hidden}
                                          : Extents{layer.directions, layer.images, layer.hidden};
  require_extents(node, h0_input, state, "first states");
  if (node.type() == "LSTM") {
    require_extents(node, c0_input, state, "first cell states");
    require_extents(node, peepholes_input, {layer.directions, node.multiply(3, layer.hidden)}, "peepholes");
  }
  return layer;
}

/// Half of the biases: those of the input weights, or those of the recurrent ones.
ValueId half_of_bias(const Node& node, const Layer& layer, bool is_recurrent) {
  return node.graph().slice(node.operand(b_input), {0, is_recurrent ? layer.rows : 0}, {layer.directions, layer.rows},
                            {1, 1});
}

/// x w + bias, of all steps and directions: N,T,D,GH.
ValueId gates_of(const Node& node, const Layer& layer) {
  graph::Graph& graph = node.graph();
  const int64_t columns = node.multiply(layer.directions, layer.rows);
  const ValueId x = graph.reshape(node.operand(x_input), {node.multiply(layer.images, layer.steps), layer.features});
  const ValueId w = graph.permute(graph.reshape(node.operand(w_input), {columns, layer.features}), {1, 0});
  std::optional<ValueId> bias;
  if (node.has(b_input)) bias = graph.reshape(half_of_bias(node, layer, false), {columns});
  const ValueId gates = product(node, x, w, {}, bias);
  if (layer.batch_first) return graph.reshape(gates, {layer.images, layer.steps, layer.directions, layer.rows});
  return graph.permute(graph.reshape(gates, {layer.steps, layer.images, layer.directions, layer.rows}), {1, 0, 2, 3});
}

}  // namespace

void read_recurrent(Node& node) {
  node.require_inputs(3, node.type() == "LSTM" ? 8 : 6);
  if (node.is_integer(x_input)) refuse("its elements are integers");
  Layer layer = layer_of(node);
  graph::Graph& graph = node.graph();
  RecurrentForward& recurrent = layer.recurrent;
  std::vector<graph::Operand> inputs;
  const auto add = [&](const char* name, ValueId value) {
    inputs.push_back({name, value});
    return spec_of(graph, value);
  };
  const auto add_state = [&](const char* name, int input) {
    return add(name, layer.batch_first ? node.operand(input) : graph.permute(node.operand(input), {1, 0, 2}));
  };
  recurrent.gates = add("gates", gates_of(node, layer));
  recurrent.r = add("r", node.operand(r_input));
  if (node.has(b_input)) recurrent.r_bias = add("r_bias", half_of_bias(node, layer, true));
  const bool is_lstm = node.type() == "LSTM";
  if (is_lstm && node.has(peepholes_input)) recurrent.peepholes = add("peepholes", node.operand(peepholes_input));
  if (node.has(h0_input)) recurrent.h0 = add_state("h0", h0_input);
  if (is_lstm && node.has(c0_input)) recurrent.c0 = add_state("c0", c0_input);
  if (node.has(lengths_input)) recurrent.lengths = add("lengths", node.operand(lengths_input));
  const DType dtype = recurrent.gates.dtype;
  recurrent.y = spec_of(dtype, {layer.images, layer.steps, layer.directions, layer.hidden});
  const TensorSpec state = spec_of(dtype, {layer.images, layer.directions, layer.hidden});
  if (node.gives(1)) recurrent.hn = state;
  if (is_lstm && node.gives(2)) recurrent.cn = state;
  for (const graph::Operand& given : graph.call(recurrent.request(), std::move(inputs))) {
    if (given.name == "y") {
      node.give(layer.batch_first ? given.value : graph.permute(given.value, {1, 2, 0, 3}), 0);
    } else {
      node.give(layer.batch_first ? given.value : graph.permute(given.value, {1, 0, 2}), given.name == "hn" ? 1 : 2);
    }
  }
}

}  // namespace kiln::onnx_frontend
