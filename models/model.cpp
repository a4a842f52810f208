#include "kiln/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/graph/layouts.h"
#include "kiln/graph/memory_plan.h"
#include "kiln/graph/passes.h"
#include "kiln/graph/strides.h"
#include "kiln/memory.h"
#include "kiln/models/requests.h"
#include "kiln/prediction.h"

namespace kiln {
namespace {

constexpr int64_t aligned(int64_t bytes) {
  return (bytes + graph::memory_alignment - 1) / graph::memory_alignment * graph::memory_alignment;
}

/// An operand that the caller brings: argument `argument` of a step lies `offset` bytes behind the start of a port.
struct CallersOperand {
  size_t argument;
  size_t port;  // inputs first, then outputs
  int64_t offset;
};

/// A step with all that is known of it before a run.
struct Bound {
  Plan plan;
  RunValues values;
  std::vector<Address> addresses;
  std::vector<CallersOperand> callers;
  void* workspace = nullptr;
  const void* prepared = nullptr;  // null: the plan prepares nothing
};

RunValues values_of(const Plan& plan, const graph::Step& step) {
  const Expression* code = plan.request().user_code ? plan.request().user_code.expression() : nullptr;
  std::vector<NamedScalar> numbers;
  std::vector<NamedInteger> integers;
  std::vector<std::pair<size_t, float>> scalars;
  for (const auto& [name, number] : step.numbers) {
    const auto known = code == nullptr ? std::vector<std::string>{} : code->scalars();
    const auto found = std::find(known.begin(), known.end(), name);
    if (found != known.end()) {
      scalars.emplace_back(found - known.begin(), number);
    } else {
      numbers.push_back({name, number});
    }
  }
  for (const auto& [name, integer] : step.integers) integers.push_back({name, integer});
  RunValues values = plan.values(numbers, integers);
  for (const auto& [place, number] : scalars) values.scalars[place] = number;
  values.n = step.batch;
  return values;
}

std::string uncovered_text(const std::vector<UncoveredNode>& nodes) {
  std::string text;
  for (const UncoveredNode& node : nodes)
    text += fmt::format("\n  node '{}' ({}): {}", node.name, node.operation, node.reason);
  return text;
}

}  // namespace

namespace models {
namespace {

double cost(const Request& request) {
  try {
    return predicted_seconds(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return std::numeric_limits<double>::infinity();
  }
}

std::vector<bool> channels_last(const graph::Graph& graph, const graph::ScheduleOptions& options, ModelLayout layout) {
  switch (layout) {
    case ModelLayout::channels_first:
      return {};
    case ModelLayout::channels_last:
      return graph::all_channels_last(graph);
    case ModelLayout::automatic:
      break;
  }
  return graph::choose_layouts(graph, options, cost);
}

}  // namespace

Lowered lower(const std::string& path, const ModelOptions& options) {
  Lowered lowered;
  lowered.model = read_onnx(path, {options.dtype, options.batch});
  if (options.fuse) graph::optimise(lowered.model.graph, cost);
  try {
    graph::ScheduleOptions how{.dynamic_batch = options.dynamic_batch};
    how.channels_last = channels_last(lowered.model.graph, how, options.layout);
    lowered.schedule = graph::schedule(lowered.model.graph, how);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.message()), error.hint());
  }
  return lowered;
}

}  // namespace models

std::optional<ModelLayout> parse_model_layout(std::string_view word) {
  if (word == "auto") return ModelLayout::automatic;
  if (word == "nchw") return ModelLayout::channels_first;
  return word == "nhwc" ? std::optional(ModelLayout::channels_last) : std::nullopt;
}

struct Model::Impl {
  std::string path;
  std::vector<ModelTensor> inputs, outputs;
  std::vector<ModelStep> steps;
  ModelMemory use;
  std::optional<DeviceMemory> weights, arena;
  std::vector<Bound> bound;
  std::vector<const void*> ports;  // addresses of a run, inputs first
};

namespace {

std::vector<ModelTensor> tensors_of(const graph::Graph& graph, const std::vector<graph::Graph::Port>& ports,
                                    const std::vector<OnnxPort>& types, const std::string& what) {
  std::vector<ModelTensor> tensors;
  for (size_t i = 0; i < ports.size(); ++i) {
    const graph::Value& value = graph.value(ports[i].value);
    if (value.extents.size() > Tensor::max_rank) {
      throw Error(ErrorCode::unsupported, fmt::format("{} '{}' has {} dimensions, and tensors have up to {}", what,
                                                      ports[i].name, value.extents.size(), Tensor::max_rank));
    }
    tensors.push_back({ports[i].name, types[i].type, value.dtype, value.extents});
  }
  return tensors;
}

/// Makes of a schedule what Model runs: memory, plans, and the addresses of their operands.
class Loader {
 public:
  Loader(Context& context, const models::Lowered& lowered)
      : context_(context),
        graph_(lowered.model.graph),
        schedule_(lowered.schedule),
        places_(schedule_.buffers.size()) {}

  /// Memory of a Model; the scratch is there only while it is loaded.
  enum class Area { weights, scratch, arena };
  struct Place {
    Area area = Area::arena;
    int64_t offset = 0;
  };

  void run(std::vector<Bound>& bound, ModelMemory& use, std::optional<DeviceMemory>& weights,
           std::optional<DeviceMemory>& arena, std::vector<ModelStep>& steps) {
    make_plans();
    place_weights(use);
    place_arena(use);
    weights.emplace(context_, static_cast<size_t>(std::max<int64_t>(use.weights, 1)));
    arena.emplace(context_, static_cast<size_t>(std::max<int64_t>(use.arena, 1)));
    DeviceMemory scratch(context_, static_cast<size_t>(std::max<int64_t>(scratch_bytes_, 1)));
    weights_ = static_cast<std::byte*>(weights->data());
    arena_ = static_cast<std::byte*>(arena->data());
    scratch_ = static_cast<std::byte*>(scratch.data());
    upload(*weights, Area::weights, use.weights);
    upload(scratch, Area::scratch, scratch_bytes_);
    run_once();
    for (size_t s = 0; s < plans_.size(); ++s) {
      bound.push_back(bind(schedule_.steps[s], plans_[s], s));
      steps.push_back({plans_[s].request(), plans_[s].variant(), plans_[s].source(), schedule_.steps[s].origins});
    }
  }

 private:
  void make_plans() {
    std::vector<Request> all;
    for (const graph::Step& step : schedule_.once) all.push_back(step.request);
    for (const graph::Step& step : schedule_.steps) all.push_back(step.request);
    context_.prepare(all);
    for (const graph::Step& step : schedule_.steps) plans_.push_back(context_.plan(step.request));
  }

  bool is_needed(const graph::Buffer& buffer) const { return buffer.first_step.has_value(); }

  /// Constants and what is computed from them. What only that computation reads goes when it is done.
  void place_weights(ModelMemory& use) {
    for (size_t b = 0; b < places_.size(); ++b) {
      const graph::Buffer& buffer = schedule_.buffers[b];
      if (buffer.home != graph::Buffer::Home::constant && buffer.home != graph::Buffer::Home::kept) continue;
      int64_t& end = is_needed(buffer) ? use.weights : scratch_bytes_;
      places_[b] = {is_needed(buffer) ? Area::weights : Area::scratch, end};
      end += aligned(buffer.bytes);
    }
    for (const Plan& plan : plans_) {
      prepared_.push_back(use.weights);
      if (prepares(plan)) use.weights += aligned(plan.prepared_bytes());
    }
  }

  int64_t workspace_of(const Plan& plan) const {
    return prepares(plan) ? plan.prepared_workspace_bytes() : plan.workspace_bytes();
  }
  static bool prepares(const Plan& plan) { return plan.request().constant_weights && plan.prepared_bytes() > 0; }

  void place_arena(ModelMemory& use) {
    std::vector<graph::Lifetime> lifetimes;
    std::vector<size_t> buffers;
    for (size_t b = 0; b < places_.size(); ++b) {
      const graph::Buffer& buffer = schedule_.buffers[b];
      if (buffer.home != graph::Buffer::Home::arena || !is_needed(buffer)) continue;
      lifetimes.push_back({buffer.bytes, *buffer.first_step, *buffer.last_step});
      buffers.push_back(b);
    }
    for (size_t s = 0; s < plans_.size(); ++s) lifetimes.push_back({workspace_of(plans_[s]), s, s});
    const graph::MemoryPlan plan = graph::plan_memory(lifetimes);
    for (size_t i = 0; i < buffers.size(); ++i) places_[buffers[i]].offset = plan.offsets[i];
    workspaces_.assign(plan.offsets.begin() + static_cast<std::ptrdiff_t>(buffers.size()), plan.offsets.end());
    use.arena = plan.bytes;
    use.least_arena = plan.least;
    for (const graph::Lifetime& life : lifetimes) use.unshared += aligned(life.bytes);
  }

  void upload(DeviceMemory& memory, Area area, int64_t bytes) {
    std::vector<std::byte> all(static_cast<size_t>(bytes));
    for (size_t b = 0; b < places_.size(); ++b) {
      const graph::Buffer& buffer = schedule_.buffers[b];
      if (buffer.home != graph::Buffer::Home::constant || places_[b].area != area) continue;
      const graph::Value& value = graph_.value(buffer.number);
      graph::write_packed(*graph_.bytes(buffer.number), size_of(value.dtype), value.extents, buffer.order,
                          all.data() + places_[b].offset);
    }
    if (!all.empty()) memory.upload(all);
  }

  void* address(const graph::Argument& argument) const {
    const Place& place = places_[argument.buffer];
    std::byte* base = place.area == Area::arena ? arena_ : place.area == Area::weights ? weights_ : scratch_;
    return base + place.offset + argument.offset;
  }

  Bound bind(const graph::Step& step, const Plan& plan, size_t s) {
    Bound bound{plan, values_of(plan, step), {}, {}};
    for (size_t a = 0; a < step.arguments.size(); ++a) {
      const graph::Argument& argument = step.arguments[a];
      const graph::Buffer& buffer = schedule_.buffers[argument.buffer];
      const bool is_input = buffer.home == graph::Buffer::Home::input;
      if (is_input || buffer.home == graph::Buffer::Home::output) {
        const size_t port = buffer.number + (is_input ? 0 : graph_.inputs().size());
        bound.callers.push_back({a, port, argument.offset});
        bound.addresses.emplace_back();
      } else {
        bound.addresses.emplace_back(address(argument));
      }
    }
    bound.workspace = workspace_of(plan) > 0 ? arena_ + workspaces_[s] : nullptr;
    if (prepares(plan)) {
      void* prepared = weights_ + prepared_[s];
      plan.prepare_weights(nullptr, bound.addresses, prepared);
      bound.prepared = prepared;
    }
    return bound;
  }

  /// What depends on constants only. Its workspace is the Context's affair: it is needed once.
  void run_once() {
    for (const graph::Step& step : schedule_.once) {
      const Plan plan = context_.plan(step.request);
      std::vector<Address> addresses;
      for (const graph::Argument& argument : step.arguments) addresses.emplace_back(address(argument));
      std::optional<DeviceMemory> workspace;
      if (plan.workspace_bytes() > 0) workspace.emplace(context_, static_cast<size_t>(plan.workspace_bytes()));
      plan.run(nullptr, addresses, workspace ? workspace->data() : nullptr, values_of(plan, step));
      std::byte word{};
      if (workspace) workspace->download({&word, 1});  // waits before the memory goes
    }
  }

  Context& context_;
  const graph::Graph& graph_;
  const graph::Schedule& schedule_;
  std::vector<Place> places_;
  std::vector<Plan> plans_;          // of schedule_.steps
  std::vector<int64_t> prepared_;    // of each plan, in the weights
  std::vector<int64_t> workspaces_;  // of each plan, in the arena
  std::byte* weights_ = nullptr;
  std::byte* arena_ = nullptr;
  std::byte* scratch_ = nullptr;
  int64_t scratch_bytes_ = 0;
};

bool is_packed(const Tensor& tensor) {
  int64_t stride = 1;
  for (int d = tensor.rank(); d-- > 0;) {
    if (tensor.extent(d) > 1 && tensor.stride(d) != stride) return false;
    stride *= tensor.extent(d);
  }
  return true;
}

/// A tensor without dimensions is given as one of one element.
std::vector<int64_t> called_extents(const ModelTensor& tensor) {
  return tensor.extents.empty() ? std::vector<int64_t>{1} : tensor.extents;
}

void check(const ModelTensor& wanted, const Tensor& given, const char* what) {
  const std::vector<int64_t> extents(given.extents().begin(), given.extents().end()), expected = called_extents(wanted);
  if (given.dtype() != wanted.dtype || extents != expected) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} '{}' is {} {}, expected {} {}", what, wanted.name, to_string(given.dtype()),
                            fmt::join(extents, "x"), to_string(wanted.dtype), fmt::join(expected, "x")),
                extents == expected ? "convert it" : "a Model is made for one batch: ModelOptions::batch");
  }
  if (given.empty()) return;
  std::string fault;
  if (!is_packed(given))
    fault = fmt::format("has the strides {}, expected logical order", fmt::join(given.strides(), "x"));
  if (given.alignment() < default_alignment) fault = fmt::format("is not {}-byte aligned", default_alignment);
  if (given.data() == nullptr) fault = "is null";
  if (!fault.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}' {}", what, wanted.name, fault),
                "copy it to memory in logical order without gaps");
  }
}

void take(const std::vector<ModelTensor>& wanted, std::span<const NamedTensor> given, const char* what,
          const void** addresses) {
  std::vector<bool> seen(wanted.size(), false);
  for (const NamedTensor& tensor : given) {
    const auto found =
        std::find_if(wanted.begin(), wanted.end(), [&](const ModelTensor& each) { return each.name == tensor.name; });
    if (found == wanted.end()) {
      std::vector<std::string> names;
      for (const ModelTensor& each : wanted) names.push_back(each.name);
      throw Error(ErrorCode::invalid_argument, fmt::format("the model has no {} '{}'", what, tensor.name),
                  fmt::format("it has {}", fmt::join(names, ", ")));
    }
    const auto i = static_cast<size_t>(found - wanted.begin());
    if (seen[i]) throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}' is given twice", what, tensor.name));
    seen[i] = true;
    check(*found, tensor.tensor, what);
    addresses[i] = tensor.tensor.data();
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} '{}' is not given", what, wanted[static_cast<size_t>(missing - seen.begin())].name));
  }
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data()); };
  const auto end = [&](const Tensor& tensor) { return begin(tensor) + static_cast<uintptr_t>(tensor.span_bytes()); };
  return !a.empty() && !b.empty() && begin(a) < end(b) && begin(b) < end(a);
}

/// An output is written while inputs and other outputs are read.
void check_apart(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs) {
  const auto check_pair = [](const NamedTensor& output, const NamedTensor& other, const char* what) {
    if (!overlap(output.tensor, other.tensor)) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("output '{}' shares memory with {} '{}'", output.name, what, other.name),
                "give each output memory of its own");
  };
  for (size_t j = 0; j < outputs.size(); ++j) {
    for (const NamedTensor& input : inputs) check_pair(outputs[j], input, "input");
    for (size_t k = 0; k < j; ++k) check_pair(outputs[j], outputs[k], "output");
  }
}

}  // namespace

Model::Model(Context& context, const std::string& path, const ModelOptions& options) : impl_(std::make_unique<Impl>()) {
  const models::Lowered lowered = models::lower(path, options);
  if (!lowered.model.uncovered.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: nodes that are not covered:{}", path, uncovered_text(lowered.model.uncovered)),
                "docs/onnx-node-tests.md lists what is");
  }
  impl_->path = path;
  const graph::Graph& graph = lowered.model.graph;
  impl_->inputs = tensors_of(graph, graph.inputs(), lowered.model.inputs, path + ": input");
  impl_->outputs = tensors_of(graph, graph.outputs(), lowered.model.outputs, path + ": output");
  Loader(context, lowered).run(impl_->bound, impl_->use, impl_->weights, impl_->arena, impl_->steps);
  impl_->ports.resize(impl_->inputs.size() + impl_->outputs.size());
}

Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model::Impl& Model::present() const {
  if (!impl_) {
    throw Error(ErrorCode::invalid_argument, "this Model was moved from", "use the one that it was moved to");
  }
  return *impl_;
}

const std::vector<ModelTensor>& Model::inputs() const {
  return present().inputs;
}
const std::vector<ModelTensor>& Model::outputs() const {
  return present().outputs;
}
const std::vector<ModelStep>& Model::steps() const {
  return present().steps;
}
const ModelMemory& Model::memory() const {
  return present().use;
}

void Model::run(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs, Stream stream) {
  Impl& model = present();
  take(model.inputs, inputs, "input", model.ports.data());
  take(model.outputs, outputs, "output", model.ports.data() + model.inputs.size());
  check_apart(inputs, outputs);
  for (Bound& step : model.bound) {
    for (const CallersOperand& operand : step.callers) {
      step.addresses[operand.argument] =
          Address(static_cast<const std::byte*>(model.ports[operand.port]) + operand.offset);
    }
    if (step.prepared != nullptr) {
      step.plan.run_prepared(stream, step.addresses, step.prepared, step.workspace, step.values);
    } else {
      step.plan.run(stream, step.addresses, step.workspace, step.values);
    }
  }
}

}  // namespace kiln
