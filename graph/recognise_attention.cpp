// recognise_attention(): the chain of products, scale, mask and softmax that exporters write becomes one call.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "effort.h"
#include "kiln/base/error.h"
#include "kiln/generator/operations/attention.h"
#include "kiln/graph/optimise.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// softmax(scale q kt + bias) v: its nodes, and the values that they read.
struct AttentionMatch {
  std::set<size_t> indices;
  ValueId q = 0, kt = 0, v = 0, result = 0;
  std::optional<ValueId> bias;
  double scale = 1;
};

class AttentionMatcher {
 public:
  AttentionMatcher(const Graph& graph, const Edges& edges) : graph_(graph), edges_(edges) {}

  std::optional<AttentionMatch> match(size_t index) {
    const Call* softmax = call(index, "softmax_forward");
    if (softmax == nullptr) return std::nullopt;
    const ValueId scores = softmax->inputs[0].value, weights = softmax->outputs.front().value;
    const auto rank = static_cast<int64_t>(graph_.value(scores).extents.size());
    const std::string* mode = word_of(*softmax, "mode");
    if (mode == nullptr || *mode != "accurate" || axis_of(*softmax) != rank - 1) return std::nullopt;
    const auto last = edges_.sole_user(weights);
    const Call* product = last ? call(*last, "gemm") : nullptr;
    if (product == nullptr || find(product->inputs, "a")->value != weights) return std::nullopt;
    found_.indices = {index, *last};
    found_.v = find(product->inputs, "b")->value;
    found_.result = product->outputs.front().value;
    return match_scores(scores, index) && fits() ? std::optional(found_) : std::nullopt;
  }

 private:
  const Call* call(size_t index, std::string_view operation) const {
    const Call* found = std::get_if<Call>(&graph_.nodes()[index]);
    return found != nullptr && found->request.operation == operation && is_plain(*found) ? found : nullptr;
  }
  static int64_t axis_of(const Call& softmax) {
    for (const Attribute& each : softmax.request.attributes) {
      if (each.name == "axis") return std::get<std::vector<int64_t>>(each.value).front();
    }
    return -1;
  }

  /// Goes up from the scores that `reader` alone reads: a bias, a scale, and the product of queries and keys.
  bool match_scores(ValueId scores, size_t reader) {
    const auto index = edges_.sole_user(scores) == reader ? edges_.producer(scores) : std::nullopt;
    if (!index) return false;
    if (const Call* product = call(*index, "gemm")) {
      found_.indices.insert(*index);
      found_.q = unscaled(find(product->inputs, "a")->value, *index);
      found_.kt = unscaled(find(product->inputs, "b")->value, *index);
      return true;
    }
    const Call* function = call(*index, "tensor_op");
    const std::string* mode = function == nullptr ? nullptr : word_of(*function, "mode");
    if (mode == nullptr || function->inputs.size() != 2) return false;
    found_.indices.insert(*index);
    const ValueId a = function->inputs[0].value, b = function->inputs[1].value;
    if (*mode == "add") return match_bias(a, b, *index) || match_bias(b, a, *index);
    const std::optional<float> factor = number_of(graph_, edges_, b);
    if (*mode == "mul") {
      if (factor) return take_scale(*factor) && match_scores(a, *index);
      const std::optional<float> first = number_of(graph_, edges_, a);
      return first && take_scale(*first) && match_scores(b, *index);
    }
    return *mode == "div" && factor && *factor != 0 && take_scale(1 / static_cast<double>(*factor)) &&
           match_scores(a, *index);
  }

  bool take_scale(double factor) {
    const double scale = found_.scale * factor;
    if (!std::isfinite(static_cast<float>(scale)) || static_cast<float>(scale) == 0) return false;
    found_.scale = scale;
    return true;
  }

  /// A factor of the product without the number that it is multiplied by, for this product alone.
  ValueId unscaled(ValueId factor, size_t reader) {
    const auto index = edges_.sole_user(factor) == reader ? edges_.producer(factor) : std::nullopt;
    const Call* function = index ? call(*index, "tensor_op") : nullptr;
    const std::string* mode = function == nullptr ? nullptr : word_of(*function, "mode");
    if (mode == nullptr || *mode != "mul" || function->inputs.size() != 2 || edges_.is_fixed(factor)) return factor;
    for (const size_t number : {size_t{1}, size_t{0}}) {
      const ValueId other = function->inputs[1 - number].value;
      const std::optional<float> scale = number_of(graph_, edges_, function->inputs[number].value);
      const bool is_same = graph_.value(other).extents == graph_.value(factor).extents &&
                           graph_.value(other).dtype == graph_.value(factor).dtype;
      if (!scale || !is_same || !take_scale(*scale)) continue;
      found_.indices.insert(*index);
      return other;
    }
    return factor;
  }

  /// The bias is added behind the scale: a scale of both would stand in front of it here.
  bool match_bias(ValueId scores, ValueId bias, size_t reader) {
    if (found_.bias || found_.scale != 1 || scores == bias || !is_floating(graph_.value(bias).dtype)) return false;
    const AttentionMatch before = found_;
    found_.bias = bias;
    if (graph_.value(scores).extents == graph_.value(find_result(reader)).extents && match_scores(scores, reader)) {
      return true;
    }
    found_ = before;
    return false;
  }
  ValueId find_result(size_t index) const { return std::get<Call>(graph_.nodes()[index]).outputs.front().value; }

  /// Whether images and heads are the same for queries, keys and values: one, two, or none of either.
  bool fits() const {
    const Extents &q = graph_.value(found_.q).extents, &kt = graph_.value(found_.kt).extents,
                  &v = graph_.value(found_.v).extents;
    if (q.size() < 2 || q.size() > 4 || kt.size() != q.size() || v.size() != q.size()) return false;
    for (size_t d = 0; d + 2 < q.size(); ++d) {
      if (kt[d] != q[d] || v[d] != q[d]) return false;
    }
    // Calls that run once stay apart from those of each run.
    return std::none_of(found_.indices.begin(), found_.indices.end(),
                        [&](size_t index) { return edges_.is_fixed(find_result(index)); });
  }

  const Graph& graph_;
  const Edges& edges_;
  AttentionMatch found_;
};

/// Puts the call in the place of the nodes, between views of four dimensions.
class AttentionRewrite {
 public:
  AttentionRewrite(Graph& graph, const AttentionMatch& match) : graph_(graph), match_(match) {
    AttentionForward attention;
    attention.q = add("q", with_four(match.q));
    attention.k = add("k", transposed(with_four(match.kt)));
    attention.v = add("v", with_four(match.v));
    if (match.bias) attention.bias = add("bias", with_four(*match.bias));
    const Value& result = graph_.value(match.result);
    const ValueId y =
        result.extents.size() == 4 ? match.result : graph_.add_value({{}, result.dtype, four(result.extents)});
    attention.y = spec_of(graph_.value(y));
    attention_ = attention;
    call_.outputs.push_back({"y", y});
    call_.numbers.emplace_back("scale", static_cast<float>(match.scale));
    for (const size_t index : match.indices) {
      append_origins(call_.origins, std::get<Call>(graph_.nodes()[index]).origins);
    }
  }

  /// Whether the operation takes the call, and it costs no more than the calls apart.
  bool pays(const Cost& cost) {
    try {
      const Request request = attention_.request();
      call_.request = request;
      call_.request.operands.clear();
      std::vector<Request> apart;
      for (const size_t index : match_.indices) {
        const auto own = request_of(graph_, std::get<Call>(graph_.nodes()[index]));
        if (!own) return false;
        apart.push_back(*own);
      }
      return cost(request) < cost.sum(apart);
    } catch (const Error&) {
      return false;  // more elements than a kernel takes
    }
  }

  std::vector<Node> nodes() {
    const ValueId y = call_.outputs.front().value;
    nodes_.emplace_back(std::move(call_));
    if (y != match_.result) nodes_.emplace_back(View{Reshape{}, y, match_.result});
    return std::move(nodes_);
  }

 private:
  static Extents four(Extents extents) {
    while (extents.size() < 4) extents.insert(extents.end() - 2, 1);
    return extents;
  }
  ValueId with_four(ValueId id) {
    const Value value = graph_.value(id);
    if (value.extents.size() == 4) return id;
    const ValueId shaped = graph_.add_value({{}, value.dtype, four(value.extents)});
    nodes_.emplace_back(View{Reshape{}, id, shaped});
    return shaped;
  }
  ValueId transposed(ValueId id) {
    Value value = graph_.value(id);
    std::swap(value.extents[2], value.extents[3]);
    const ValueId turned = graph_.add_value({{}, value.dtype, value.extents});
    nodes_.emplace_back(View{Permute{{0, 1, 3, 2}}, id, turned});
    return turned;
  }
  TensorSpec add(const char* name, ValueId value) {
    call_.inputs.push_back({name, value});
    return spec_of(graph_.value(value));
  }

  Graph& graph_;
  const AttentionMatch& match_;
  AttentionForward attention_;
  Call call_;
  std::vector<Node> nodes_;
};

}  // namespace

void recognise_attention(Graph& graph, const Cost& cost) {
  Edges edges(graph);
  for (size_t index = 0; index < graph.nodes().size();) {
    const auto match = edges.is_free(index) ? std::nullopt : AttentionMatcher(graph, edges).match(index);
    if (match) {
      AttentionRewrite rewrite(graph, *match);
      if (rewrite.pays(cost)) {
        edges.replace(match->indices, rewrite.nodes());
        if (!Effort::may_go_on(edges)) return;
        index = *match->indices.begin();  // those behind have moved up
        continue;
      }
    }
    ++index;
  }
}

}  // namespace kiln::graph
