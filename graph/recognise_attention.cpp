// recognise_attention(): the chain of products, scale, masks and softmax that exporters write becomes one call.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "attention_match.h"
#include "effort.h"
#include "kiln/base/error.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/graph/optimise.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// Bias of keys that a finite number hides. It swallows each score that it is added to, so that a query that sees no
/// key gives the mean of the values, as where all its scores are the one number. Operand `mask` would give 0.
constexpr double hidden_score = -1e30;

/// The first of `id` and its sources behind views that only reshape that `stops` is true of; nothing if it is of none.
template <class Stops>
std::optional<ValueId> source_of(const Graph& graph, const Edges& edges, ValueId id, const Stops& stops) {
  constexpr int most_views = 16;
  for (int views = 0; !stops(id); ++views) {
    const View* view = views == most_views ? nullptr : reshape_at(graph, edges.producer(id));
    if (view == nullptr) return std::nullopt;
    id = view->source;
  }
  return id;
}

/// The view that exchanges the last two dimensions of its source; null if `id` is none.
const View* exchange_at(const Graph& graph, const Edges& edges, ValueId id) {
  const auto index = edges.producer(id);
  const View* view = index ? std::get_if<View>(&graph.nodes()[*index]) : nullptr;
  const Permute* permute = view == nullptr ? nullptr : std::get_if<Permute>(&view->kind);
  if (permute == nullptr || permute->order.size() < 2) return nullptr;
  std::vector<size_t> order = permute->order;
  std::swap(order[order.size() - 2], order.back());
  return std::is_sorted(order.begin(), order.end()) ? view : nullptr;
}

/// Results of functions of masks and biases, which many layers share: by the function, whether it is of a mask that
/// hides, the operands before they were reshaped, and the result's extents.
using MaskResults = std::map<std::tuple<TensorOpMode, bool, std::vector<ValueId>, Extents>, ValueId>;

/// Puts the call in the place of the nodes, between views of four dimensions.
class AttentionRewrite {
 public:
  AttentionRewrite(Graph& graph, const Edges& edges, const AttentionMatch& match, const MaskResults& known)
      : graph_(graph), edges_(edges), match_(match), known_(known) {
    for (const size_t index : match.indices) {
      const Call* each = std::get_if<Call>(&graph.nodes()[index]);
      if (each != nullptr) append_origins(origins_, each->origins);
    }
  }

  /// Whether the operations take the calls, and these cost no more than those apart.
  bool pays(const Cost& cost) {
    try {
      if (!build()) return false;
      std::vector<Request> apart;
      for (const size_t index : match_.indices) {
        const Call* each = std::get_if<Call>(&graph_.nodes()[index]);
        if (each == nullptr) continue;
        const auto own = request_of(graph_, *each);
        if (!own) return false;
        apart.push_back(*own);
      }
      return cost.sum(requests_) < cost.sum(apart);
    } catch (const Error&) {
      return false;  // more elements than a kernel takes
    }
  }

  std::vector<Node> nodes() { return std::move(nodes_); }
  /// Results that the nodes make.
  const MaskResults& results() const { return made_; }

 private:
  bool build() {
    const Extents& scores = match_.scores;
    const auto of_heads = [&](int64_t rows, int64_t columns) { return Extents{scores[0], scores[1], rows, columns}; };
    const Extents q = graph_.value(match_.q).extents, v = graph_.value(match_.v).extents;
    AttentionForward attention;
    Call call;
    const auto add = [&](const char* name, ValueId value) {
      call.inputs.push_back({name, value});
      return spec_of(graph_.value(value));
    };
    attention.q = add("q", shaped(match_.q, of_heads(scores[2], q.back())));
    attention.k = add("k", keys(of_heads(scores[3], q.back())));
    attention.v = add("v", shaped(match_.v, of_heads(scores[3], v.back())));
    std::vector<ValueId> biases, sources;
    for (const ScoreOperand& each : match_.biases) {
      const auto bias = of_scores(each);
      if (!bias) return false;
      biases.push_back(*bias);
      sources.push_back(each.value);
    }
    if (match_.mask) {
      const ScoreMask& mask = *match_.mask;
      const auto flags = of_scores(mask.flags);
      if (!flags) return false;
      if (std::isfinite(mask.fill)) {
        const ValueId seen = number(0), hidden = number(hidden_score);
        const std::vector<ValueId> operands{*flags, mask.hides ? hidden : seen, mask.hides ? seen : hidden};
        biases.push_back(function(TensorOpMode::select, DType::f32, operands, {mask.flags.value}));
      } else {
        attention.mask = add(
            "mask", mask.hides ? function(TensorOpMode::logical_not, DType::u8, {*flags}, {mask.flags.value}) : *flags);
      }
    }
    if (biases.size() > 1) biases = {function(TensorOpMode::add, DType::f32, biases, sources)};
    if (!biases.empty()) attention.bias = add("bias", biases.front());
    if (match_.causal) {
      attention.right = 0;
      attention.align = *match_.causal;
    }
    const Value result = graph_.value(match_.result);
    const Extents y = of_heads(scores[2], v.back());
    const ValueId own = result.extents == y ? match_.result : graph_.add_value({{}, result.dtype, y});
    attention.y = spec_of(graph_.value(own));
    call.numbers.emplace_back("scale", static_cast<float>(match_.scale));
    append(attention.request(), std::move(call), {"y", own}, false);
    if (own != match_.result) nodes_.emplace_back(View{Reshape{}, own, match_.result});
    return true;
  }

  /// Adds the call. Its cost counts unless it runs once.
  void append(Request request, Call call, Operand result, bool is_fixed) {
    if (!is_fixed) requests_.push_back(request);
    request.operands.clear();
    call.request = std::move(request);
    call.outputs.push_back(std::move(result));
    call.origins = origins_;
    nodes_.emplace_back(std::move(call));
  }

  ValueId shaped(ValueId id, const Extents& extents) {
    const auto is_shaped = [&](ValueId each) { return graph_.value(each).extents == extents; };
    const auto source = source_of(graph_, edges_, id, is_shaped);
    return source ? *source : view(Reshape{}, id, extents);
  }

  /// The keys, with their elements innermost.
  ValueId keys(const Extents& extents) {
    const auto is_exchange = [&](ValueId each) {
      if (exchange_at(graph_, edges_, each) == nullptr) return false;
      const Extents& own = graph_.value(each).extents;
      return own[own.size() - 2] == extents[3] && own.back() == extents[2];
    };
    if (const auto across = source_of(graph_, edges_, match_.kt, is_exchange)) {
      return shaped(exchange_at(graph_, edges_, *across)->source, extents);
    }
    const ValueId across = shaped(match_.kt, {extents[0], extents[1], extents[3], extents[2]});
    return view(Permute{{0, 1, 3, 2}}, across, extents);
  }

  /// The operand as it repeats to images, heads, queries and keys; nothing if it repeats along a part of one of these.
  std::optional<ValueId> of_scores(const ScoreOperand& operand) {
    const Extents& own = graph_.value(operand.value).extents;
    const auto extents =
        operand.whole == match_.scores ? std::optional(own) : repeated_in(own, operand.whole, match_.scores);
    return extents ? std::optional(shaped(operand.value, *extents)) : std::nullopt;
  }

  /// The function of the operands, which are numbers and reshaped `sources`.
  ValueId function(TensorOpMode mode, DType dtype, const std::vector<ValueId>& operands, std::vector<ValueId> sources) {
    TensorOp op;
    Call call;
    Extents extents(4, 1);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Value& value = graph_.value(operands[i]);
      (i == 0 ? op.a : i == 1 ? op.b.emplace() : op.c.emplace()) = spec_of(value);
      call.inputs.push_back({std::string(1, "abc"[i]), operands[i]});
      for (size_t d = 0; d < 4; ++d) extents[d] = value.extents[d] == 1 ? extents[d] : value.extents[d];
    }
    const auto is_fixed = [&](ValueId id) { return edges_.is_fixed(id); };
    const bool are_fixed = std::all_of(sources.begin(), sources.end(), is_fixed);
    const auto is_computed = [&](ValueId id) { return reshape_at(graph_, edges_.producer(id)) == nullptr; };
    for (ValueId& source : sources) source = source_of(graph_, edges_, source, is_computed).value_or(source);
    const std::tuple key(mode, match_.mask && match_.mask->hides, std::move(sources), extents);
    const auto known = known_.find(key);
    if (known != known_.end() && edges_.producer(known->second) < *match_.indices.rbegin()) return known->second;
    const ValueId y = graph_.add_value({{}, dtype, extents});
    op.mode = mode;
    op.y = spec_of(graph_.value(y));
    append(op.request(), std::move(call), {"y", y}, are_fixed);
    made_[key] = y;
    return y;
  }

  ValueId number(double each) { return constant_of(graph_, DType::f32, {1, 1, 1, 1}, {each}); }

  ValueId view(ViewKind kind, ValueId source, const Extents& extents) {
    const ValueId result = graph_.add_value({{}, graph_.value(source).dtype, extents});
    nodes_.emplace_back(View{std::move(kind), source, result});
    return result;
  }

  Graph& graph_;
  const Edges& edges_;
  const AttentionMatch& match_;
  const MaskResults& known_;
  MaskResults made_;
  std::vector<std::string> origins_;
  std::vector<Node> nodes_;
  std::vector<Request> requests_;  // of the calls that run each time
};

}  // namespace

void recognise_attention(Graph& graph, const Cost& cost) {
  Edges edges(graph);
  int64_t elements_left = int64_t{1} << 26;
  MaskResults results;
  for (size_t index = 0; index < graph.nodes().size();) {
    const auto match = edges.is_free(index) ? std::nullopt : attention_at(graph, edges, index, elements_left);
    if (match) {
      AttentionRewrite rewrite(graph, edges, *match, results);
      if (rewrite.pays(cost)) {
        edges.replace(match->indices, rewrite.nodes());
        for (const auto& [key, value] : rewrite.results()) results.insert_or_assign(key, value);
        if (!Effort::may_go_on(edges)) return;
        index = *match->indices.begin();  // those behind have moved up
        continue;
      }
    }
    ++index;
  }
}

}  // namespace kiln::graph
