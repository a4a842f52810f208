#include "kiln/graph/layouts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "kiln/generator/operation.h"
#include "partial_schedule.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// Values that lie in one layout.
using LayoutRegion = std::vector<ValueId>;

/// Sets of values that have been joined.
class Sets {
 public:
  explicit Sets(size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), ValueId{0}); }

  /// The value that stands for the set of `id`.
  ValueId root(ValueId id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  void join(ValueId a, ValueId b) { parents_[root(b)] = root(a); }

 private:
  std::vector<ValueId> parents_;
};

/// Joins values into regions, and finds those that a convolution reads or writes.
class Regions {
 public:
  explicit Regions(const Graph& graph) : graph_(graph), sets_(graph.count()), spatial_(graph.count(), false) {
    for (const Node& node : graph.nodes()) std::visit([this](const auto& each) { join(each); }, node);
  }

  std::vector<LayoutRegion> of_convolutions() {
    std::vector<bool> wanted(graph_.count(), false);
    for (ValueId id = 0; id < graph_.count(); ++id) {
      if (spatial_[id]) wanted[sets_.root(id)] = true;
    }
    std::map<ValueId, LayoutRegion> regions;
    for (ValueId id = 0; id < graph_.count(); ++id) {
      if (wanted[sets_.root(id)]) regions[sets_.root(id)].push_back(id);
    }
    std::vector<LayoutRegion> result;
    for (auto& [first, region] : regions) result.push_back(std::move(region));
    return result;
  }

 private:
  /// Dimensions mean the same in operands of equal rank; those of one or two have one layout only.
  void join(ValueId a, ValueId b) {
    const size_t rank = graph_.value(a).extents.size();
    if (rank > 2 && rank == graph_.value(b).extents.size()) sets_.join(a, b);
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
  Sets sets_;
  std::vector<bool> spatial_;
};

std::vector<bool> channels_last_in(const std::vector<LayoutRegion>& regions, size_t count) {
  std::vector<bool> result(count, false);
  for (const LayoutRegion& region : regions) {
    for (const ValueId id : region) result[id] = true;
  }
  return result;
}

/// The part of a graph whose steps depend on where a region lies.
///
/// Views and concatenations connect values to clusters: the memory of a value depends on its cluster alone, and the
/// request of a call on the clusters of its operands.
class Surroundings {
 public:
  Surroundings(const Graph& graph, const std::vector<LayoutRegion>& regions)
      : graph_(graph), clusters_(clusters_of(graph)), members_(graph.count()) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const bool is_call = std::holds_alternative<Call>(graph.nodes()[i]);
      for_each_value(i, [&](ValueId id) { add(is_call ? members_[root(id)].calls : members_[root(id)].moves, i); });
    }
    for (size_t i = 0; i < graph.inputs().size(); ++i) members_[root(graph.inputs()[i].value)].inputs.push_back(i);
    for (size_t j = 0; j < graph.outputs().size(); ++j) members_[root(graph.outputs()[j].value)].outputs.push_back(j);
    for (size_t r = 0; r < regions.size(); ++r) {
      for (const ValueId id : regions[r]) add(members_[root(id)].regions, r);
    }
  }

  struct Around {
    Part part;
    std::vector<size_t> regions;  ///< Whose surroundings have a value of this region's clusters.
  };

  Around of(const LayoutRegion& region) {
    Around around;
    for (const ValueId id : region) {
      for (const size_t call : members_[root(id)].calls) around.part.nodes.push_back(call);
    }
    sort(around.part.nodes);
    std::vector<ValueId> roots;
    for (const ValueId id : region) roots.push_back(root(id));
    for (const size_t call : around.part.nodes) for_each_value(call, [&](ValueId id) { roots.push_back(root(id)); });
    sort(roots);
    for (const ValueId each : roots) {
      const Members& members = members_[each];
      append(around.part.nodes, members.moves);
      append(around.part.inputs, members.inputs);
      append(around.part.outputs, members.outputs);
      append(around.regions, members.regions);
    }
    for (auto* numbers : {&around.part.nodes, &around.part.inputs, &around.part.outputs, &around.regions})
      sort(*numbers);
    return around;
  }

 private:
  /// Facts of a cluster, at the value that stands for it.
  struct Members {
    std::vector<size_t> moves, calls;  // nodes: views and concatenations, and calls that have an operand in it
    std::vector<size_t> inputs, outputs, regions;
  };

  static Sets clusters_of(const Graph& graph) {
    Sets clusters(graph.count());
    for (const Node& node : graph.nodes()) {
      if (const View* view = std::get_if<View>(&node)) clusters.join(view->result, view->source);
      if (const Concat* concat = std::get_if<Concat>(&node)) {
        for (const ValueId part : concat->parts) clusters.join(concat->result, part);
      }
    }
    return clusters;
  }

  template <typename See>
  void for_each_value(size_t node, const See& see) const {
    for_each_input(graph_.nodes()[node], see);
    for_each_output(graph_.nodes()[node], see);
  }

  /// Keeps each of ascending numbers once.
  static void add(std::vector<size_t>& numbers, size_t number) {
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
  }
  static void append(std::vector<size_t>& numbers, const std::vector<size_t>& more) {
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  static void sort(std::vector<size_t>& numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }

  ValueId root(ValueId id) { return clusters_.root(id); }

  const Graph& graph_;
  Sets clusters_;
  std::vector<Members> members_;
};

class Search {
 public:
  Search(const Graph& graph, ScheduleOptions options, const Cost& cost, size_t most_steps)
      : graph_(graph),
        options_(std::move(options)),
        cost_(cost),
        most_steps_(most_steps),
        regions_(Regions(graph).of_convolutions()),
        surroundings_(graph, regions_),
        schedules_(graph, options_) {}

  std::vector<bool> run() {
    if (regions_.empty()) return {};
    choose_start();
    std::vector<bool> open(regions_.size(), true);  // regions whose surroundings have changed since they were tried
    while (std::find(open.begin(), open.end(), true) != open.end()) {
      for (size_t r = 0; r < regions_.size(); ++r) {
        if (!open[r]) continue;
        if (steps_ > most_steps_) return options_.channels_last;
        const Surroundings::Around around = surroundings_.of(regions_[r]);
        open[r] = false;
        if (!turn_if_cheaper(regions_[r], around.part)) continue;
        for (const size_t other : around.regions) open[other] = true;
      }
    }
    return options_.channels_last;
  }

 private:
  /// Nothing or everything channels last, whichever is cheaper.
  void choose_start() {
    const Part whole = whole_of(graph_);
    options_.channels_last.assign(graph_.count(), false);
    const double cost_of_none = seconds(whole);
    options_.channels_last = channels_last_in(regions_, graph_.count());
    if (!(seconds(whole) < cost_of_none)) options_.channels_last.assign(graph_.count(), false);
  }

  void turn(const LayoutRegion& region) {
    for (const ValueId id : region) options_.channels_last[id] = !options_.channels_last[id];
  }

  bool turn_if_cheaper(const LayoutRegion& region, const Part& around) {
    constexpr double rounding = 1e-12;  // of sums; without it regions could turn forever
    const double before = seconds(around);
    turn(region);
    if (seconds(around) < before * (1 - rounding)) return true;
    turn(region);
    return false;
  }

  double seconds(const Part& part) {
    const std::vector<Request> requests = schedules_.requests(part);
    steps_ += part.nodes.size() + requests.size();
    return cost_.sum(requests);
  }

  const Graph& graph_;
  ScheduleOptions options_;  // with the cheapest layouts so far
  const Cost& cost_;
  size_t most_steps_;
  std::vector<LayoutRegion> regions_;
  Surroundings surroundings_;
  PartialSchedules schedules_;
  size_t steps_ = 0;  // nodes and steps of all schedules that were looked at
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
