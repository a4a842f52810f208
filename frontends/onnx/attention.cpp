// Attention (opset 23 and 24): heads of queries, keys and values, with keys and values of earlier steps in front.
#include "kiln/generator/operations/attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

constexpr int64_t first_with_short_masks = 24;  // opset
enum Input : int { q_input, k_input, v_input, mask_input, past_key_input, past_value_input, lengths_input };
enum Output : int { y_output, present_key_output, present_value_output, products_output };

/// The input as images, heads, queries or keys, and elements; of three dimensions the heads lie in the last one.
ValueId heads_of(const Node& node, int input, const char* attribute) {
  const Extents& x = node.extents(input);
  if (x.size() == 4) return node.operand(input);
  if (x.size() != 3) node.fail(fmt::format("input {} is {}, expected 3 or 4 dimensions", input, fmt::join(x, "x")));
  const int64_t heads = node.attributes().integer(attribute, 0);
  if (heads < 1 || x[2] % heads != 0) {
    node.fail(fmt::format("{} is {}, and input {} has {} elements", attribute, heads, input, x[2]));
  }
  graph::Graph& graph = node.graph();
  return graph.permute(graph.reshape(node.operand(input), {x[0], x[1], heads, x[2] / heads}), {0, 2, 1, 3});
}

/// Keys or values behind those of earlier steps.
ValueId with_past(Node& node, ValueId present, int input, int output) {
  if (!node.has(input)) return present;
  graph::Graph& graph = node.graph();
  const Extents &past = node.extents(input), &now = graph.value(present).extents;
  if (past.size() != 4 || past[0] != now[0] || past[1] != now[1] || past[3] != now[3]) {
    node.fail(fmt::format("input {} is {}, and this step has {}", input, fmt::join(past, "x"), fmt::join(now, "x")));
  }
  const ValueId both = graph.concat({node.operand(input), present}, 2);
  if (node.gives(output)) node.give(both, output);
  return both;
}

/// Whether queries stand at the end of all keys.
bool stands_at_end(const Node& node) {
  const auto number = [&](const char* name, int64_t fallback) { return node.attributes().integer(name, fallback); };
  const bool has_window =
      number("is_causal", 0) != 0 || number("left_window_size", -1) >= 0 || number("right_window_size", -1) >= 0;
  return has_window && node.has(past_key_input);
}

/// Keys or values as far as the mask goes: those behind it are hidden.
ValueId under_mask(const Node& node, ValueId cached) {
  if (node.opset() < first_with_short_masks || !node.has(mask_input) || node.rank(mask_input) == 0) return cached;
  graph::Graph& graph = node.graph();
  Extents extents = graph.value(cached).extents;
  const int64_t keys = node.extents(mask_input).back();
  if (keys >= extents[2] || (stands_at_end(node) && !node.has(lengths_input))) return cached;
  extents[2] = keys;
  return graph.slice(cached, {0, 0, 0, 0}, extents, {1, 1, 1, 1});
}

/// The mask with four dimensions: what is added to the scores, or what of them counts.
void add_mask(const Node& node, AttentionForward& attention, std::vector<graph::Operand>& inputs) {
  if (!node.has(mask_input)) return;
  graph::Graph& graph = node.graph();
  const Extents& mask = node.extents(mask_input);
  const int64_t keys = attention.k.extents[2];
  if (mask.empty() || mask.size() > 4) node.fail(fmt::format("its mask is {}", fmt::join(mask, "x")));
  const bool repeats = mask.back() == 1 && node.opset() < first_with_short_masks;
  if (mask.back() != keys && !repeats) refuse(fmt::format("its mask has {} keys of {}", mask.back(), keys));
  const ValueId value = with_rank(graph, node.operand(mask_input), 4);
  const bool is_boolean = node.is_integer(mask_input);
  (is_boolean ? attention.mask : attention.bias) = spec_of(graph, value);
  inputs.push_back({is_boolean ? "mask" : "bias", value});
}

/// Sets which keys a query sees: those around its own place, which is behind all keys of earlier steps.
void set_window(const Node& node, AttentionForward& attention) {
  const bool is_causal = node.attributes().integer("is_causal", 0) != 0;
  attention.left = node.attributes().integer("left_window_size", -1);
  attention.right = node.attributes().integer("right_window_size", -1);
  if (attention.left < -1 || attention.right < -1) node.fail("a window has fewer than no keys");
  if (is_causal) attention.right = 0;
  if (attention.left < 0 && attention.right < 0) return;
  const int64_t past = node.has(past_key_input) ? node.extents(past_key_input)[2] : 0;
  const int64_t now = attention.k.extents[2] - past, queries = attention.q.extents[2];
  if (node.has(lengths_input) || (past > 0 && now == queries)) {
    attention.align = AttentionAlign::end;
  } else if (past > 0) {
    if (attention.left >= 0) refuse("its window has keys of earlier steps, and other keys than queries in this one");
    attention.right += past;
  }
}

}  // namespace

void read_attention(Node& node) {
  node.require_inputs(3, 7);
  if (node.is_integer(q_input)) refuse("its elements are integers");
  if (node.attributes().real("softcap").value_or(0) != 0) refuse("it limits scores (softcap)");
  if (node.gives(products_output)) refuse("it gives its products too (qk_matmul_output)");
  if (node.has(past_key_input) != node.has(past_value_input)) node.fail("it has one of two pasts");
  graph::Graph& graph = node.graph();
  AttentionForward attention;
  std::vector<graph::Operand> inputs;
  const auto add = [&](const char* name, ValueId value) {
    inputs.push_back({name, value});
    return spec_of(graph, value);
  };
  const bool are_heads_last = node.rank(q_input) == 3;
  attention.q = add("q", heads_of(node, q_input, "q_num_heads"));
  const ValueId k = heads_of(node, k_input, "kv_num_heads"), v = heads_of(node, v_input, "kv_num_heads");
  attention.k = add("k", under_mask(node, with_past(node, k, past_key_input, present_key_output)));
  attention.v = add("v", under_mask(node, with_past(node, v, past_value_input, present_value_output)));
  add_mask(node, attention, inputs);
  if (node.has(lengths_input)) attention.lengths = add("lengths", node.operand(lengths_input));
  set_window(node, attention);
  graph::Numbers numbers;
  if (const auto scale = node.attributes().real("scale")) {
    if (*scale == 0) refuse("its scale is 0");
    numbers.emplace_back("scale", static_cast<float>(*scale));
  }
  const Extents &queries = attention.q.extents, &values = attention.v.extents;
  attention.y = spec_of(attention.q.dtype, {queries[0], queries[1], queries[2], values[3]});
  const ValueId y = graph.call(attention.request(), std::move(inputs), numbers).front().value;
  if (!are_heads_last) return node.give(y);
  const ValueId rows = graph.permute(y, {0, 2, 1, 3});
  node.give(graph.reshape(rows, {queries[0], queries[2], node.multiply(queries[1], values[3])}));
}

}  // namespace kiln::onnx_frontend
