#include "kiln/graph/optimise.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "affine.h"
#include "effort.h"
#include "kiln/generator/operation.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

Call* call_at(Graph& graph, size_t index) {
  return std::get_if<Call>(&graph.nodes()[index]);
}

// ---- normalisations ----

class NormFolding {
 public:
  NormFolding(Graph& graph, Edges& edges) : graph_(graph), edges_(edges) {}

  /// Whether it changed the graph: then its edges are others.
  bool fold(size_t index) {
    const Call* norm = call_at(graph_, index);
    if (norm == nullptr || norm->request.operation != "norm_inference" || !is_plain(*norm)) return false;
    const ValueId x = find(norm->inputs, "x")->value;
    const auto host_index = edges_.producer(x);
    const Call* found = host_index && edges_.sole_user(x) == index ? call_at(graph_, *host_index) : nullptr;
    if (found == nullptr || found->request.operation != "conv_forward" || !can_scale(*found)) return false;
    Call host = *found;
    Operand* w = find(host.inputs, "w");
    // Each of those that share a filter would get its own.
    constexpr size_t most_copies = 16;
    if (!graph_.is_constant(w->value) || edges_.users(w->value).size() > most_copies) return false;
    const auto affine = affine_of(graph_, edges_, *norm);
    if (!affine) return false;
    const int64_t channels = graph_.value(x).extents[1];
    auto bias = per_channel(graph_, edges_, host, "bias", channels, 0);
    if (!bias) return false;
    std::vector<double> weights = elements_of(graph_, w->value);
    const size_t each = weights.size() / std::max<size_t>(bias->size(), 1);
    for (size_t k = 0; k < bias->size(); ++k) {
      for (size_t i = 0; i < each; ++i) weights[k * each + i] *= affine->scale[k];
      (*bias)[k] = (*bias)[k] * affine->scale[k] + affine->shift[k];
    }
    const Value old = graph_.value(w->value);
    w->value = constant_of(graph_, old.dtype, old.extents, weights);
    const ValueId all = constant_of(graph_, DType::f32, {channels}, *bias);
    if (Operand* own = find(host.inputs, "bias")) {
      own->value = all;
    } else {
      host.inputs.push_back({"bias", all});
      host.request.epilogue.push_back(EpilogueStage::bias);
    }
    host.outputs.front().value = norm->outputs.front().value;
    append_origins(host.origins, norm->origins);
    edges_.replace({index});
    edges_.replace({*host_index}, {std::move(host)});
    return true;
  }

 private:
  static bool can_scale(const Call& host) {
    const bool only_bias = host.request.epilogue.empty() || host.request.epilogue == std::vector{EpilogueStage::bias};
    return only_bias && !host.request.user_code && host.request.blend == Blend{};
  }

  Graph& graph_;
  Edges& edges_;
};

// ---- stages ----

/// Reader of a call's result: the one call that reads it, behind a view that reshapes it or not.
struct Consumer {
  size_t index;
  std::optional<size_t> reshape;  ///< Index of that view.
  ValueId value;                  ///< As the consumer reads it.
};

std::optional<Consumer> consumer_of(Graph& graph, const Edges& edges, ValueId result) {
  auto user = edges.sole_user(result);
  if (!user) return std::nullopt;
  Consumer consumer{*user, {}, result};
  if (const View* view = std::get_if<View>(&graph.nodes()[*user])) {
    if (!std::holds_alternative<Reshape>(view->kind)) return std::nullopt;
    user = edges.sole_user(view->result);
    if (!user) return std::nullopt;
    consumer = {*user, consumer.index, view->result};
  }
  return call_at(graph, consumer.index) == nullptr ? std::nullopt : std::optional(consumer);
}

/// A stage that a consumer is, and the operand that it reads.
struct Stage {
  EpilogueStage stage;
  std::optional<ValueId> operand;
  Numbers numbers;
};

class StageFusing {
 public:
  StageFusing(Graph& graph, Edges& edges) : graph_(graph), edges_(edges) {}

  bool fuse(size_t index) {
    Call* host = call_at(graph_, index);
    if (host == nullptr || host->request.user_code || operation(host->request.operation).stages().empty()) return false;
    const ValueId result = host->outputs.front().value;
    const auto consumer = consumer_of(graph_, edges_, result);
    if (!consumer || host->outputs.size() != 1) return false;
    Call& next = *call_at(graph_, consumer->index);
    // Calls that run once stay apart from those of each run.
    const bool at_one_time = edges_.is_fixed(result) == edges_.is_fixed(next.outputs.front().value);
    const bool plain = at_one_time && is_plain(next) &&
                       graph_.value(next.outputs.front().value).dtype == graph_.value(result).dtype &&
                       graph_.value(next.outputs.front().value).extents == graph_.value(consumer->value).extents;
    const std::optional<Stage> stage = plain ? stage_of(*host, next, *consumer) : std::nullopt;
    if (!stage || !takes(*host, stage->stage)) return false;
    return apply(index, *consumer, *stage);
  }

 private:
  static bool takes(const Call& host, EpilogueStage stage) {
    const std::vector<EpilogueStage> known = operation(host.request.operation).stages();
    const std::vector<EpilogueStage>& own = host.request.epilogue;
    return !has_fused_activation(host) && std::find(known.begin(), known.end(), stage) != known.end() &&
           std::all_of(own.begin(), own.end(), [&](EpilogueStage each) { return each < stage; });
  }

  std::optional<Stage> stage_of(const Call& host, Call& next, const Consumer& consumer) const {
    const std::string* mode = word_of(next, "mode");
    if (mode == nullptr) return std::nullopt;
    if (next.request.operation == "activation_forward" && *mode == "relu") return Stage{EpilogueStage::relu, {}, {}};
    if (next.request.operation == "activation_forward" && *mode == "clip") {
      Numbers bounds;
      for (const auto& [name, number] : next.numbers)
        bounds.emplace_back(name == "low" ? "clip_lo" : "clip_hi", number);
      return Stage{EpilogueStage::clip, {}, bounds};
    }
    if (next.request.operation != "tensor_op" || *mode != "add") return std::nullopt;
    const ValueId a = find(next.inputs, "a")->value, b = find(next.inputs, "b")->value;
    if (!may_stay_unstored(graph_.value(consumer.value).dtype)) return std::nullopt;
    return addition_of(host, a == consumer.value ? b : a, consumer);
  }

  /// A bias, or a residual.
  std::optional<Stage> addition_of(const Call& host, ValueId other, const Consumer& consumer) const {
    const Extents& result = graph_.value(host.outputs.front().value).extents;
    const auto extents = repeated_in(graph_.value(other).extents, graph_.value(consumer.value).extents, result);
    if (!extents) return std::nullopt;
    if (*extents == result) return Stage{EpilogueStage::add, other, {}};
    const auto rank = static_cast<int>(result.size());
    const size_t channel = operation(host.request.operation).channel_dimension(rank);
    Extents per_channel(result.size(), 1);
    per_channel[channel] = result[channel];
    return *extents == per_channel ? std::optional(Stage{EpilogueStage::bias, other, {}}) : std::nullopt;
  }

  /// The host takes the consumer's slot, behind all that the stage reads.
  bool apply(size_t index, const Consumer& consumer, const Stage& stage) {
    Call fused = *call_at(graph_, index);
    const Call& next = *call_at(graph_, consumer.index);
    const Value result = graph_.value(fused.outputs.front().value);
    std::vector<Node> before, behind;
    if (stage.operand) {
      const bool is_bias = stage.stage == EpilogueStage::bias;
      const size_t channel =
          operation(fused.request.operation).channel_dimension(static_cast<int>(result.extents.size()));
      const Extents extents = is_bias ? Extents{result.extents[channel]} : result.extents;
      ValueId operand = *stage.operand;
      if (graph_.value(operand).extents != extents) {
        const ValueId shaped = graph_.add_value({{}, graph_.value(operand).dtype, extents});
        before.emplace_back(View{Reshape{}, operand, shaped});
        operand = shaped;
      }
      fused.inputs.push_back({is_bias ? "bias" : "residual", operand});
    }
    fused.request.epilogue.push_back(stage.stage);
    fused.numbers.insert(fused.numbers.end(), stage.numbers.begin(), stage.numbers.end());
    append_origins(fused.origins, next.origins);
    const ValueId given = next.outputs.front().value;
    if (consumer.reshape) {
      behind.emplace_back(View{Reshape{}, fused.outputs.front().value, given});
    } else {
      fused.outputs.front().value = given;
    }
    if (!is_legal(graph_, fused)) return false;
    before.emplace_back(std::move(fused));
    std::move(behind.begin(), behind.end(), std::back_inserter(before));
    std::set<size_t> indices{index, consumer.index};
    if (consumer.reshape) indices.insert(*consumer.reshape);
    edges_.replace(indices, std::move(before));
    return true;
  }

  Graph& graph_;
  Edges& edges_;
};

/// Tries `pass` at every index from the last to the first until none changes anything. The last first: of two whose
/// results are added, the later one takes the sum.
template <typename Pass>
void until_nothing_changes(Graph& graph) {
  Edges edges(graph);
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t index = graph.nodes().size(); index-- > 0;) {
      if (edges.is_free(index)) continue;
      // The node that stands there after a change is tried again.
      for (size_t at = index; at < graph.nodes().size() && Pass::run(graph, edges, at); at = edges.first_from(index)) {
        if (!Effort::may_go_on(edges)) return;
        changed = true;
      }
    }
  }
}

struct NormPass {
  static bool run(Graph& graph, Edges& edges, size_t index) { return NormFolding(graph, edges).fold(index); }
};
struct StagePass {
  static bool run(Graph& graph, Edges& edges, size_t index) { return StageFusing(graph, edges).fuse(index); }
};

}  // namespace

void remove_dead(Graph& graph) {
  std::vector<bool> wanted(graph.count(), false);
  for (const Graph::Port& port : graph.outputs()) wanted[port.value] = true;
  std::vector<Node>& nodes = graph.nodes();
  size_t to = nodes.size();  // those from there on are wanted
  for (size_t i = nodes.size(); i-- > 0;) {
    bool live = false;
    for_each_output(nodes[i], [&](ValueId id) { live = live || wanted[id]; });
    if (!live) continue;
    for_each_input(nodes[i], [&](ValueId id) { wanted[id] = true; });
    if (--to != i) nodes[to] = std::move(nodes[i]);
  }
  nodes.erase(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(to));
}

void fold_normalisations(Graph& graph) {
  until_nothing_changes<NormPass>(graph);
}

void fuse_stages(Graph& graph) {
  until_nothing_changes<StagePass>(graph);
}

void optimise(Graph& graph, const Cost& cost) {
  remove_dead(graph);
  recognise_normalisations(graph);
  recognise_attention(graph, cost);
  remove_dead(graph);  // views behind those that attention reads
  fold_normalisations(graph);
  fuse_stages(graph);
  fuse_elements(graph);
  fuse_prologues(graph, cost);
  remove_dead(graph);
}

}  // namespace kiln::graph
