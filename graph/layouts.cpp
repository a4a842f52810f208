#include "kiln/graph/layouts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "kiln/generator/operation.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// Values that lie in one layout.
using LayoutRegion = std::vector<ValueId>;

/// Joins values into regions, and finds those that a convolution reads or writes.
class Regions {
 public:
  explicit Regions(const Graph& graph) : graph_(graph), parents_(graph.count()), spatial_(graph.count(), false) {
    std::iota(parents_.begin(), parents_.end(), ValueId{0});
    for (const Node& node : graph.nodes()) std::visit([this](const auto& each) { join(each); }, node);
  }

  std::vector<LayoutRegion> of_convolutions() {
    std::vector<bool> wanted(graph_.count(), false);
    for (ValueId id = 0; id < graph_.count(); ++id) {
      if (spatial_[id]) wanted[root(id)] = true;
    }
    std::map<ValueId, LayoutRegion> regions;
    for (ValueId id = 0; id < graph_.count(); ++id) {
      if (wanted[root(id)]) regions[root(id)].push_back(id);
    }
    std::vector<LayoutRegion> result;
    for (auto& [first, region] : regions) result.push_back(std::move(region));
    return result;
  }

 private:
  ValueId root(ValueId id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }

  /// Dimensions mean the same in operands of equal rank; those of one or two have one layout only.
  void join(ValueId a, ValueId b) {
    const size_t rank = graph_.value(a).extents.size();
    if (rank > 2 && rank == graph_.value(b).extents.size()) parents_[root(b)] = root(a);
  }

  void join(const Call& call) {
    const Operation& kind = operation(call.request.operation);
    const ValueId result = call.outputs.front().value;
    for (const Operand& output : call.outputs) join(result, output.value);
    if (!kind.has_weights()) {
      for (const Operand& input : call.inputs) join(result, input.value);
      return;
    }
    // A convolution may read another layout than it writes, but its filters lie as what they are applied to.
    const ValueId source = find(call.inputs, kind.prologue_operand())->value;
    for (const Operand& input : call.inputs) {
      const bool is_source = input.name == kind.prologue_operand() || input.name == "w";
      join(is_source ? source : result, input.value);
    }
    spatial_[source] = spatial_[result] = true;
  }

  void join(const View& view) {
    const bool keeps_dimensions = std::holds_alternative<Slice>(view.kind) || std::holds_alternative<Repeat>(view.kind);
    if (keeps_dimensions) join(view.result, view.source);
  }

  void join(const Concat& concat) {
    for (const ValueId part : concat.parts) join(concat.result, part);
  }

  const Graph& graph_;
  std::vector<ValueId> parents_;
  std::vector<bool> spatial_;
};

std::vector<bool> channels_last_in(const std::vector<LayoutRegion>& regions, size_t count) {
  std::vector<bool> result(count, false);
  for (const LayoutRegion& region : regions) {
    for (const ValueId id : region) result[id] = true;
  }
  return result;
}

class Search {
 public:
  Search(const Graph& graph, const ScheduleOptions& options, const Cost& cost, size_t most_steps)
      : graph_(graph),
        options_(options),
        cost_(cost),
        most_steps_(most_steps),
        regions_(Regions(graph).of_convolutions()) {}

  std::vector<bool> run() {
    if (regions_.empty()) return {};
    const std::vector<bool> none(graph_.count(), false), all = channels_last_in(regions_, graph_.count());
    const double cost_of_none = seconds(none), cost_of_all = seconds(all);
    best_ = cost_of_all < cost_of_none ? all : none;
    least_ = std::min(cost_of_all, cost_of_none);
    bool changed = true;
    while (changed) {
      changed = false;
      for (const LayoutRegion& region : regions_) {
        if (steps_ > most_steps_) return best_;
        changed = try_other_side(region) || changed;
      }
    }
    return best_;
  }

 private:
  bool try_other_side(const LayoutRegion& region) {
    std::vector<bool> other = best_;
    for (const ValueId id : region) other[id] = !other[id];
    const double cost = seconds(other);
    if (!(cost < least_)) return false;
    best_ = std::move(other);
    least_ = cost;
    return true;
  }

  double seconds(const std::vector<bool>& channels_last) {
    ScheduleOptions options = options_;
    options.channels_last = channels_last;
    const Schedule scheduled = schedule(graph_, options);
    steps_ += graph_.nodes().size() + scheduled.steps.size();
    double sum = 0;
    for (const Step& step : scheduled.steps) sum += cost_(step.request);
    return sum;
  }

  const Graph& graph_;
  const ScheduleOptions& options_;
  const Cost& cost_;
  size_t most_steps_;
  std::vector<LayoutRegion> regions_;
  std::vector<bool> best_;
  double least_ = 0;
  size_t steps_ = 0;  // of all schedules that were looked at
};

}  // namespace

std::vector<bool> all_channels_last(const Graph& graph) {
  return channels_last_in(Regions(graph).of_convolutions(), graph.count());
}

std::vector<bool> choose_layouts(const Graph& graph, const ScheduleOptions& options, const Cost& cost,
                                 size_t most_steps) {
  return Search(graph, options, cost, most_steps).run();
}

}  // namespace kiln::graph
