#include "kiln/graph/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/batch_invariance.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/graph/strides.h"
#include "partial_schedule.h"

namespace kiln::graph {
namespace {

/// Where a value's elements lie.
struct Place {
  size_t buffer = 0;
  Region region;
};

int64_t bytes_of(const Value& value) {
  return count_elements(value.extents) * size_of(value.dtype);
}

/// The tensor of a request that lies at `region`. Without dimensions it has one element.
TensorSpec spec_of(DType dtype, const Region& region) {
  TensorSpec spec{dtype, region.extents, region.strides};
  if (spec.extents.empty()) {
    spec.extents = {1};
    spec.strides = {1};
  }
  const auto bytes = static_cast<uint64_t>(region.offset * size_of(dtype));
  spec.alignment = 1 << std::countr_zero(bytes | uint64_t{default_alignment});
  spec.canonicalise();
  return spec;
}

}  // namespace

class Scheduler {
 public:
  Scheduler(const Graph& graph, const ScheduleOptions& options)
      : graph_(graph), options_(options), producers_(graph.count()), fixed_(graph.count()), places_(graph.count()) {
    find_producers();
    find_live();
  }

  Schedule run(const Part& part) {
    forget();
    place_ports(part);
    place_outputs(part);
    place_concats(part);
    place_for_reshapes(part);
    for (const size_t i : part.nodes) {
      if (live_[i]) std::visit([&](const auto& node) { emit(node); }, graph_.nodes()[i]);
    }
    for (const size_t j : part.outputs) give_output(j);
    find_lifetimes();
    return std::exchange(schedule_, {});
  }

 private:
  const Node* producer(ValueId id) const { return producers_[id] ? &graph_.nodes()[*producers_[id]] : nullptr; }

  void find_producers() {
    for (ValueId id = 0; id < graph_.count(); ++id) fixed_[id] = graph_.is_constant(id);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      bool fixed = true;
      for_each_input(graph_.nodes()[i], [&](ValueId id) { fixed = fixed && fixed_[id]; });
      for_each_output(graph_.nodes()[i], [&](ValueId id) {
        producers_[id] = i;
        fixed_[id] = fixed;
      });
    }
  }

  /// Nodes that an output depends on.
  void find_live() {
    live_.assign(graph_.nodes().size(), false);
    std::vector<bool> wanted(graph_.count(), false);
    for (const Graph::Port& port : graph_.outputs()) wanted[port.value] = true;
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      for_each_output(graph_.nodes()[i], [&](ValueId id) { live_[i] = live_[i] || wanted[id]; });
      if (live_[i]) for_each_input(graph_.nodes()[i], [&](ValueId id) { wanted[id] = true; });
    }
  }

  /// Drops the places of the part before.
  void forget() {
    for (const ValueId id : placed_) places_[id].reset();
    placed_.clear();
    outputs_.clear();
    copies_ = 0;
  }

  void place(ValueId id, Place there) {
    places_[id] = std::move(there);
    placed_.push_back(id);
  }

  size_t add_buffer(Buffer::Home home, size_t number, int64_t bytes) {
    schedule_.buffers.push_back({home, number, bytes, {}, {}, {}});
    return schedule_.buffers.size() - 1;
  }

  /// The dimensions of a value that may lie as it likes, outermost in memory first; empty for logical order.
  std::vector<size_t> order_of(ValueId id) const {
    const bool channels_last = !options_.channels_last.empty() && options_.channels_last[id];
    return channels_last ? channels_last_order(graph_.value(id).extents.size()) : std::vector<size_t>{};
  }

  Region packed_value(ValueId id) const { return packed(graph_.value(id).extents, order_of(id)); }

  /// Memory of its own for a value.
  Place at_home(ValueId id, Region region) {
    const auto home = fixed_[id] ? Buffer::Home::kept : Buffer::Home::arena;
    return {add_buffer(home, 0, bytes_of(graph_.value(id))), std::move(region)};
  }
  Place fresh(ValueId id) { return at_home(id, packed_value(id)); }

  void place_ports(const Part& part) {
    for (const size_t i : part.inputs) {
      const ValueId id = graph_.inputs()[i].value;
      const Value& value = graph_.value(id);
      place(id, {add_buffer(Buffer::Home::input, i, bytes_of(value)), packed(value.extents)});
    }
    for (const size_t j : part.outputs) {
      outputs_[j] = add_buffer(Buffer::Home::output, j, bytes_of(graph_.value(graph_.outputs()[j].value)));
    }
  }

  /// Sees to it that `id` is written `there`: by the calls behind the views and concatenations that it is, up to
  /// `most_depth` behind one another. False if it lies elsewhere, or is no such thing.
  bool place_at(ValueId id, const Place& there, int depth = 0) {
    if (depth > most_depth) return false;
    const Node* node = producer(id);
    const bool runs_once = schedule_.buffers[there.buffer].home == Buffer::Home::kept;
    if (places_[id] || node == nullptr || fixed_[id] != runs_once) return false;
    if (const View* view = std::get_if<View>(node)) {
      const auto back = seen_back(view->kind, there.region, graph_.value(view->source).extents);
      if (!back || !place_at(view->source, {there.buffer, *back}, depth + 1)) return false;
    }
    place(id, there);
    if (const Concat* concat = std::get_if<Concat>(node)) {
      for_each_part(*concat, there, [&](ValueId part, const Place& at) { (void)place_at(part, at, depth + 1); });
    }
    return true;
  }

  template <typename See>
  void for_each_part(const Concat& concat, const Place& whole, const See& see) const {
    Place part = whole;
    for (const ValueId id : concat.parts) {
      part.region.extents = graph_.value(id).extents;
      see(id, part);
      part.region.offset += part.region.extents[concat.axis] * whole.region.strides[concat.axis];
    }
  }

  void place_outputs(const Part& part) {
    for (const size_t j : part.outputs) {
      const ValueId id = graph_.outputs()[j].value;
      (void)place_at(id, {outputs_.at(j), packed(graph_.value(id).extents)});
    }
  }

  /// The last first: one inside another is written into that, and one whose parts all stand side by side in a later one
  /// is there already, as the inputs of DenseNet's layers are.
  void place_concats(const Part& part) {
    for (auto i = part.nodes.rbegin(); i != part.nodes.rend(); ++i) {
      const Concat* concat = live_[*i] ? std::get_if<Concat>(&graph_.nodes()[*i]) : nullptr;
      if (concat == nullptr || places_[concat->result]) continue;
      if (auto there = place_of_parts(*concat)) {
        place(concat->result, std::move(*there));
      } else {
        (void)place_at(concat->result, fresh(concat->result));
      }
    }
  }

  /// The whole, if its parts lie in one buffer as it has them.
  std::optional<Place> place_of_parts(const Concat& concat) const {
    const std::optional<Place>& first = places_[concat.parts.front()];
    if (!first) return std::nullopt;
    Place whole = *first;
    whole.region.extents = graph_.value(concat.result).extents;
    bool there = true;
    for_each_part(concat, whole, [&](ValueId part, const Place& at) {
      const std::optional<Place>& known = places_[part];
      there = there && known && known->buffer == at.buffer && known->region.offset == at.region.offset &&
              known->region.strides == at.region.strides;
    });
    return there ? std::optional(std::move(whole)) : std::nullopt;
  }

  /// Where `id` is going to lie if nothing is done about it; nothing where a view cannot say it, or behind more than
  /// `most_depth` views.
  std::optional<Region> expected(ValueId id, int depth = 0) const {
    if (places_[id]) return places_[id]->region;
    if (depth > most_depth) return std::nullopt;
    const View* view = producer(id) == nullptr ? nullptr : std::get_if<View>(producer(id));
    if (view == nullptr) return packed_value(id);
    const std::optional<Region> source = expected(view->source, depth + 1);
    return source ? seen_through(view->kind, *source, graph_.value(id).extents) : std::nullopt;
  }

  /// A reshape behind a permutation shows memory without gaps, if the call before them writes it in that order. One
  /// whose result is to have its channels last has them so if the call before it writes it so: a normalisation of
  /// groups of channels, say.
  void place_for_reshapes(const Part& part) {
    for (auto i = part.nodes.rbegin(); i != part.nodes.rend(); ++i) {
      const View* view = live_[*i] ? std::get_if<View>(&graph_.nodes()[*i]) : nullptr;
      if (view == nullptr || places_[view->result] || !std::holds_alternative<Reshape>(view->kind)) continue;
      const bool wants_order = !order_of(view->result).empty();
      if (!wants_order && (!expected(view->source) || expected(view->result))) continue;
      const size_t buffers = schedule_.buffers.size();
      if (!place_at(view->result, fresh(view->result))) schedule_.buffers.resize(buffers);
    }
  }

  const Place& place_of(ValueId id) {
    if (!places_[id] && graph_.is_constant(id)) {
      const size_t buffer = add_buffer(Buffer::Home::constant, id, bytes_of(graph_.value(id)));
      schedule_.buffers[buffer].order = order_of(id);
      place(id, {buffer, packed_value(id)});
    }
    if (!places_[id]) place(id, fresh(id));
    return *places_[id];
  }

  void add(Step step, bool once) {
    const bool is_empty = result_of(step.request).spec.elements() == 0;
    if (!is_empty) (once ? schedule_.once : schedule_.steps).push_back(std::move(step));
  }

  void emit(const Call& call) {
    Step step;
    step.request = call.request;
    step.numbers = call.numbers;
    step.integers = call.integers;
    step.origins = call.origins;
    bool once = true;
    for (const Operand& input : call.inputs) {
      (void)place_of(input.value);
      once = once && fixed_[input.value];
      const bool weights_stay = input.name == "w" && operation(call.request.operation).has_weights() &&
                                fixed_[input.value] && options_.constant_weights;
      step.request.constant_weights = step.request.constant_weights || weights_stay;
    }
    for (const Operand& output : call.outputs) (void)place_of(output.value);
    for (const auto* operands : {&call.inputs, &call.outputs}) {
      for (const Operand& operand : *operands) {
        step.request.operands.push_back(
            {operand.name, spec_of(graph_.value(operand.value).dtype, places_[operand.value]->region)});
      }
    }
    if (operation(call.request.operation).has_arithmetic()) step.request.arithmetic = options_.arithmetic;
    complete(step);
    if (options_.batch_invariant) step.request = batch_invariant_if_it_can_be(std::move(step.request));
    for (const kiln::Operand& operand : step.request.operands) step.arguments.push_back(argument(call, operand.name));
    step.request.constant_weights = step.request.constant_weights && !once;
    add(std::move(step), once);
  }

  Argument argument(const Call& call, const std::string& name) const {
    for (const auto* operands : {&call.inputs, &call.outputs}) {
      for (const Operand& operand : *operands) {
        if (operand.name != name) continue;
        const Place& there = *places_[operand.value];
        return {there.buffer, there.region.offset * size_of(graph_.value(operand.value).dtype)};
      }
    }
    throw Error(ErrorCode::internal, fmt::format("operand {} of {} has no value", name, call.request.operation));
  }

  void complete(Step& step) const {
    try {
      if (options_.dynamic_batch && complete_dynamic(step)) return;
      step.request = finished(std::move(step.request));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", fmt::join(step.origins, ", "), error.message()), error.hint());
    }
  }

  /// Whether the operation takes these operands with n=?.
  static bool complete_dynamic(Step& step) {
    Request request = step.request;
    try {
      const int64_t batch = finished(request).batch();
      request.dynamic_batch = true;
      step.request = finished(std::move(request));
      step.batch = batch;
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void copy(DType dtype, const Place& from, const Place& to, bool once) {
    if (count_elements(from.region.extents) == 0) return;
    Region x = from.region, y = to.region;
    merge_dimensions({&x, &y});
    count_copies(x.extents);
    copy_part(dtype, {from.buffer, x}, {to.buffer, y}, once);
  }

  /// As copy_part() makes them of a tensor.
  void count_copies(Extents extents) {
    std::sort(extents.begin(), extents.end());
    const size_t looped = extents.size() - std::min(extents.size(), transform_dimensions);
    const auto copies = count_elements({extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(looped)});
    if (std::cmp_greater(copies, most_copies - copies_)) {
      throw Error(
          ErrorCode::unsupported,
          fmt::format("the model takes more than {} copies between layouts, the most that Kiln plans", most_copies),
          "transpose and reshape in fewer dimensions, or split it into several models");
    }
    copies_ += static_cast<size_t>(copies);
  }

  /// One call for up to five dimensions; more are gone through one by one, the shortest first.
  void copy_part(DType dtype, Place from, Place to, bool once) {
    Extents& extents = from.region.extents;
    if (extents.size() > transform_dimensions) {
      const auto shortest = std::min_element(extents.begin(), extents.end()) - extents.begin();
      const int64_t count = extents[static_cast<size_t>(shortest)];
      const auto take = [&](Region& region) {
        const int64_t stride = region.strides[static_cast<size_t>(shortest)];
        region.extents.erase(region.extents.begin() + shortest);
        region.strides.erase(region.strides.begin() + shortest);
        return stride;
      };
      const int64_t from_stride = take(from.region), to_stride = take(to.region);
      for (int64_t i = 0; i < count; ++i) {
        copy_part(dtype, from, to, once);
        from.region.offset += from_stride;
        to.region.offset += to_stride;
      }
      return;
    }
    TensorTransform transform;
    transform.x = spec_of(dtype, from.region);
    transform.y = spec_of(dtype, to.region);
    Step step;
    step.request = transform.request();
    if (options_.dynamic_batch) (void)complete_dynamic(step);
    step.arguments = {{from.buffer, from.region.offset * size_of(dtype)},
                      {to.buffer, to.region.offset * size_of(dtype)}};
    add(std::move(step), once);
  }

  void emit(const View& view) {
    if (places_[view.result]) return;
    const Value& result = graph_.value(view.result);
    const Place source = place_of(view.source);
    std::optional<Region> region = seen_through(view.kind, source.region, result.extents);
    size_t buffer = source.buffer;
    if (!region) {  // a reshape that strides cannot say
      const Place whole = at_home(view.source, packed(graph_.value(view.source).extents));
      copy(result.dtype, source, whole, fixed_[view.result]);
      region = seen_through(view.kind, whole.region, result.extents).value();
      buffer = whole.buffer;
    }
    place(view.result, {buffer, std::move(*region)});
  }

  void emit(const Concat& concat) {
    const Place whole = place_of(concat.result);
    for_each_part(concat, whole, [&](ValueId part, const Place& at) {
      const Place& from = place_of(part);
      const bool is_there = from.buffer == at.buffer && from.region.offset == at.region.offset;
      if (!is_there) copy(graph_.value(part).dtype, from, at, fixed_[concat.result]);
    });
  }

  void give_output(size_t j) {
    const ValueId id = graph_.outputs()[j].value;
    const Place& from = place_of(id);
    if (from.buffer == outputs_.at(j)) return;
    copy(graph_.value(id).dtype, from, {outputs_.at(j), packed(graph_.value(id).extents)}, false);
  }

  void find_lifetimes() {
    for (size_t s = 0; s < schedule_.steps.size(); ++s) {
      for (const Argument& argument : schedule_.steps[s].arguments) {
        Buffer& buffer = schedule_.buffers[argument.buffer];
        if (!buffer.first_step) buffer.first_step = s;
        buffer.last_step = s;
      }
    }
  }

  static constexpr size_t transform_dimensions = 5;  // the most that tensor_transform has
  // Models have some ten views and concatenations behind one another. Deeper ones lie in memory of their own: what
  // looks through them calls itself.
  static constexpr int most_depth = 256;

  const Graph& graph_;
  const ScheduleOptions& options_;
  Schedule schedule_;
  std::vector<std::optional<size_t>> producers_;  // the node that makes a value
  std::vector<bool> fixed_;                       // values that depend on constants only
  std::vector<bool> live_;
  // State of the part that is scheduled:
  std::vector<std::optional<Place>> places_;
  std::vector<ValueId> placed_;       // values with a place
  std::map<size_t, size_t> outputs_;  // buffers of the outputs, by their numbers
  size_t copies_ = 0;
};

Part whole_of(const Graph& graph) {
  Part part;
  for (auto [of, count] : {std::pair(&part.nodes, graph.nodes().size()), std::pair(&part.inputs, graph.inputs().size()),
                           std::pair(&part.outputs, graph.outputs().size())}) {
    of->resize(count);
    std::iota(of->begin(), of->end(), size_t{0});
  }
  return part;
}

Schedule schedule(const Graph& graph, const ScheduleOptions& options) {
  return Scheduler(graph, options).run(whole_of(graph));
}

PartialSchedules::PartialSchedules(const Graph& graph, const ScheduleOptions& options)
    : scheduler_(std::make_unique<Scheduler>(graph, options)) {}

PartialSchedules::~PartialSchedules() = default;

std::vector<Request> PartialSchedules::requests(const Part& part) {
  std::vector<Request> requests;
  for (Step& step : scheduler_->run(part).steps) requests.push_back(std::move(step.request));
  return requests;
}

}  // namespace kiln::graph
