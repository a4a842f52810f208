#include "instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kiln/base/checked.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/generator/operation.h"
#include "kiln/graph/memory_plan.h"
#include "kiln/graph/strides.h"

namespace kiln::models {
namespace {

constexpr int64_t aligned(int64_t bytes) {
  return (bytes + graph::memory_alignment - 1) / graph::memory_alignment * graph::memory_alignment;
}

/// The values of a call of `plan`, which serves `step`.
RunValues values_of(const Plan& plan, const graph::Step& step) {
  const Expression* code = plan.request().user_code.expression();
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

bool prepares(const Plan& plan) {
  return plan.request().constant_weights && plan.prepared_bytes() > 0;
}

int64_t workspace_of(const Plan& plan) {
  return prepares(plan) ? plan.prepared_workspace_bytes() : plan.workspace_bytes();
}

/// Filters as a variant wants them, for a request. `constants`: the digest of its arguments in the weights.
std::string name_of_prepared(const Plan& plan, const std::string& constants) {
  return Digest().add(plan.request().key()).add(plan.variant()).add(constants).hex();
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Memory that is filled while a model is loaded.
class Block {
 public:
  /// Where `bytes` more will be. To be called before memory is there; the address is known behind allocate().
  int64_t reserve(int64_t bytes) {
    const int64_t begin = end_;
    const auto room = checked_add(bytes, graph::memory_alignment);
    const auto end = room ? checked_add(begin, *room) : std::nullopt;
    if (!end) throw Error(ErrorCode::out_of_memory, "the weights of the model take more than 2^63 bytes");
    end_ = begin + aligned(bytes);
    return begin;
  }

  void allocate(Context& context) { memory_.emplace(context, static_cast<size_t>(std::max<int64_t>(end_, 1))); }
  std::byte* at(int64_t offset) const { return static_cast<std::byte*>(memory_->data()) + offset; }
  bool empty() const { return end_ == 0; }

  void upload(const std::vector<std::byte>& bytes) {
    if (!bytes.empty()) memory_->upload(bytes);
  }
  size_t size() const { return static_cast<size_t>(end_); }

  /// Waits for what the default stream has to do.
  void wait() const {
    std::byte first{};
    memory_->download({&first, 1});
  }

  DeviceMemory take() { return std::move(*memory_); }

 private:
  int64_t end_ = 0;
  std::optional<DeviceMemory> memory_;
};

class Loader {
 public:
  Loader(Context& context, const Lowered& lowered, Weights& weights)
      : context_(context),
        graph_(lowered.model.graph),
        schedule_(lowered.schedule),
        weights_(weights),
        digests_(schedule_.buffers.size()),
        once_(schedule_.buffers.size(), nullptr),
        kept_(schedule_.buffers.size(), nullptr),
        arena_(schedule_.buffers.size(), 0) {}

  void run(Instance& instance) {
    make_plans();
    plan_arena(instance.use);
    name_constants();
    name_computed();
    for (size_t s = 0; s < plans_.size(); ++s) {
      const std::string constants = name_of_constants(schedule_.steps[s].arguments);
      prepared_.push_back(prepares(plans_[s]) ? name_of_prepared(plans_[s], constants) : "");
      if (plans_[s].is_open()) instance.open.push_back({s, workspace_of(plans_[s]), constants});
    }
    place();
    fill();
    if (runs_once_) run_once();
    for (size_t s = 0; s < plans_.size(); ++s) {
      instance.calls.push_back(bind(s));
      instance.steps.push_back(
          {plans_[s].request(), plans_[s].variant(), plans_[s].source(), schedule_.steps[s].origins});
    }
    constants_.block.wait();  // runs may be on other streams
    for (Fresh* fresh : {&constants_, &computed_}) {
      if (fresh->block.empty()) continue;
      const auto memory = std::make_shared<const DeviceMemory>(fresh->block.take());
      weights_.add(memory, fresh->offsets);
      reads_.insert(memory);
    }
    instance.reads.assign(reads_.begin(), reads_.end());
    instance.use.weights = weights_.bytes();
  }

 private:
  using Home = graph::Buffer::Home;

  void make_plans() {
    std::vector<Request> all;
    for (const graph::Step& step : schedule_.steps) all.push_back(step.request);
    for (const graph::Step& step : schedule_.once) all.push_back(step.request);
    const std::vector<Plan> plans = context_.plans(all);
    const auto first_once = plans.begin() + static_cast<std::ptrdiff_t>(schedule_.steps.size());
    plans_.assign(plans.begin(), first_once);
    plans_once_.assign(first_once, plans.end());
  }

  static bool is_needed(const graph::Buffer& buffer) { return buffer.first_step.has_value(); }

  void plan_arena(ModelMemory& use) {
    std::vector<graph::Lifetime> lifetimes;
    std::vector<size_t> buffers;
    for (size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const graph::Buffer& buffer = schedule_.buffers[b];
      if (buffer.home != Home::arena || !is_needed(buffer)) continue;
      lifetimes.push_back({buffer.bytes, *buffer.first_step, *buffer.last_step});
      buffers.push_back(b);
    }
    for (size_t s = 0; s < plans_.size(); ++s) lifetimes.push_back({workspace_of(plans_[s]), s, s});
    const graph::MemoryPlan plan = graph::plan_memory(lifetimes);
    for (size_t i = 0; i < buffers.size(); ++i) arena_[buffers[i]] = plan.offsets[i];
    workspaces_.assign(plan.offsets.begin() + static_cast<std::ptrdiff_t>(buffers.size()), plan.offsets.end());
    use.arena = plan.bytes;
    use.least_arena = plan.least;
    for (const graph::Lifetime& life : lifetimes) use.unshared += aligned(life.bytes);
  }

  /// Constants are known by what they hold, and by the order in which they lie.
  void name_constants() {
    for (size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const graph::Buffer& buffer = schedule_.buffers[b];
      if (buffer.home != Home::constant) continue;
      Digest name;
      name.add(text_of(*graph_.bytes(buffer.number)));
      if (!buffer.order.empty()) {
        for (const int64_t extent : graph_.value(buffer.number).extents) name.add(std::to_string(extent));
        for (const size_t dimension : buffer.order) name.add(std::to_string(dimension));
      }
      digests_[b] = name.hex();
    }
  }

  /// Names the buffers that are computed of constants only: by those constants, by the calls that touched the buffer,
  /// and by the operand that it was.
  void name_computed() {
    for (const graph::Step& step : schedule_.once) {
      Digest call;
      call.add(step.request.key()).add(std::to_string(step.batch));
      for (const auto& [name, number] : step.numbers) call.add(name).add(fmt::format("{:a}", number));
      for (const auto& [name, integer] : step.integers) call.add(name).add(std::to_string(integer));
      add_arguments(call, step.arguments);
      const std::string digest = call.hex();
      for (size_t a = 0; a < step.arguments.size(); ++a) {
        const size_t b = step.arguments[a].buffer;
        if (schedule_.buffers[b].home != Home::kept) continue;
        digests_[b] = Digest().add(digest).add(std::to_string(a)).hex();  // a call may give several
      }
    }
  }

  /// Adds the arguments that are constant: the others lie at another place in each instance.
  void add_arguments(Digest& call, const std::vector<graph::Argument>& arguments) const {
    for (const graph::Argument& argument : arguments) {
      if (is_constant(argument.buffer)) call.add(digests_[argument.buffer]).add(std::to_string(argument.offset));
    }
  }

  std::string name_of_constants(const std::vector<graph::Argument>& arguments) const {
    Digest name;
    add_arguments(name, arguments);
    return name.hex();
  }

  bool is_constant(size_t b) const {
    const Home home = schedule_.buffers[b].home;
    return home == Home::constant || home == Home::kept;
  }

  /// Memory that nothing had before, and what is to be found in it.
  struct Fresh {
    Block block;
    std::map<std::string, int64_t> offsets;

    bool holds(const std::string& digest) const { return offsets.contains(digest); }
    std::byte* at(const std::string& digest) const { return block.at(offsets.at(digest)); }
  };

  /// Constants are apart from what is computed from them, which other extents seldom share.
  void reserve(Fresh& fresh, const std::string& digest, int64_t bytes) {
    if (is_known(digest) || is_fresh(digest)) return;
    fresh.offsets[digest] = fresh.block.reserve(bytes);
  }

  bool is_known(const std::string& digest) const { return weights_.find(digest).at != nullptr; }
  bool is_fresh(const std::string& digest) const { return constants_.holds(digest) || computed_.holds(digest); }

  /// Reserves memory for what no instance before had. Buffers that only the computation of constants needs lie in the
  /// scratch.
  void place() {
    for (size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const graph::Buffer& buffer = schedule_.buffers[b];
      if (!is_constant(b) || !is_needed(buffer)) continue;
      const bool is_computed = buffer.home == Home::kept;
      runs_once_ = runs_once_ || (is_computed && !is_known(digests_[b]));
      reserve(is_computed ? computed_ : constants_, digests_[b], buffer.bytes);
    }
    for (size_t s = 0; s < plans_.size(); ++s) {
      if (!prepared_[s].empty()) reserve(computed_, prepared_[s], plans_[s].prepared_bytes());
    }
    for (size_t b = 0; b < schedule_.buffers.size(); ++b) {
      // A buffer that is computed again, though an instance before has it, is not written where runs may read it.
      const bool is_elsewhere = schedule_.buffers[b].home == Home::kept && is_known(digests_[b]);
      const bool is_scratch = is_constant(b) && (!is_needed(schedule_.buffers[b]) || is_elsewhere);
      if (runs_once_ && is_scratch) scratch_offsets_[b] = scratch_.reserve(schedule_.buffers[b].bytes);
    }
    for (Block* block : {&constants_.block, &computed_.block, &scratch_}) block->allocate(context_);
    for (size_t b = 0; b < schedule_.buffers.size(); ++b) {
      if (is_constant(b) && is_needed(schedule_.buffers[b])) kept_[b] = at(digests_[b]);
      once_[b] = scratch_offsets_.contains(b) ? scratch_.at(scratch_offsets_[b]) : kept_[b];
    }
  }

  /// The instance keeps the memory from then on.
  std::byte* at(const std::string& digest) {
    for (const Fresh* fresh : {&constants_, &computed_}) {
      if (fresh->holds(digest)) return fresh->at(digest);
    }
    const Weights::Place place = weights_.find(digest);
    reads_.insert(place.memory);
    return place.at;
  }

  void fill() {
    std::vector<std::byte> constants(constants_.block.size()), scratch(scratch_.size());
    for (size_t b = 0; b < schedule_.buffers.size(); ++b) {
      if (schedule_.buffers[b].home != Home::constant) continue;
      const auto kept = constants_.offsets.find(digests_[b]);
      const auto passing = scratch_offsets_.find(b);
      if (is_needed(schedule_.buffers[b]) && kept != constants_.offsets.end())
        write(b, constants.data() + kept->second);
      if (passing != scratch_offsets_.end()) write(b, scratch.data() + passing->second);
    }
    constants_.block.upload(constants);
    scratch_.upload(scratch);
  }

  void write(size_t b, std::byte* to) const {
    const graph::Buffer& buffer = schedule_.buffers[b];
    const graph::Value& value = graph_.value(buffer.number);
    graph::write_packed(*graph_.bytes(buffer.number), size_of(value.dtype), value.extents, buffer.order, to);
  }

  /// Runs the steps that depend on constants only. Their workspace is needed once.
  void run_once() {
    for (size_t s = 0; s < plans_once_.size(); ++s) {
      const graph::Step& step = schedule_.once[s];
      const Plan& plan = plans_once_[s];
      std::vector<Address> addresses;
      for (const graph::Argument& argument : step.arguments) {
        addresses.emplace_back(once_[argument.buffer] + argument.offset);
      }
      Block workspace;
      (void)workspace.reserve(plan.workspace_bytes());
      workspace.allocate(context_);
      plan.run(nullptr, addresses, plan.workspace_bytes() > 0 ? workspace.at(0) : nullptr, values_of(plan, step));
      workspace.wait();
    }
  }

  LoadedStep bind(size_t s) {
    const graph::Step& step = schedule_.steps[s];
    const Plan& plan = plans_[s];
    LoadedStep loaded{plan, values_of(plan, step), {}, {}, {}, nullptr};
    for (size_t a = 0; a < step.arguments.size(); ++a) {
      const graph::Argument& argument = step.arguments[a];
      if (is_constant(argument.buffer)) {
        loaded.addresses.emplace_back(kept_[argument.buffer] + argument.offset);
      } else {
        loaded.addresses.emplace_back();
        loaded.moving.push_back(moving(a, argument));
      }
    }
    if (workspace_of(plan) > 0) loaded.workspace = workspaces_[s];
    if (prepares(plan)) {
      std::byte* prepared = at(prepared_[s]);
      if (is_fresh(prepared_[s])) plan.prepare_weights(nullptr, loaded.addresses, prepared);
      loaded.prepared = prepared;
    }
    return loaded;
  }

  MovingOperand moving(size_t a, const graph::Argument& argument) const {
    const graph::Buffer& buffer = schedule_.buffers[argument.buffer];
    const size_t inputs = graph_.inputs().size(), outputs = graph_.outputs().size();
    if (buffer.home == Home::arena) return {a, inputs + outputs, arena_[argument.buffer] + argument.offset};
    return {a, buffer.number + (buffer.home == Home::input ? 0 : inputs), argument.offset};
  }

  Context& context_;
  const graph::Graph& graph_;
  const graph::Schedule& schedule_;
  Weights& weights_;
  std::vector<Plan> plans_;              // of schedule_.steps
  std::vector<Plan> plans_once_;         // of schedule_.once
  std::vector<std::string> digests_;     // of each buffer that holds constants
  std::vector<std::byte*> once_, kept_;  // where buffers are in the calls that run once, and in runs
  std::vector<int64_t> arena_;           // of each buffer there
  std::vector<int64_t> workspaces_;      // of each plan, in the arena
  std::vector<std::string> prepared_;    // of each plan, the digest of its filters; or ""
  Fresh constants_, computed_;
  std::set<SharedMemory> reads_;  // memory that runs read
  Block scratch_;
  std::map<size_t, int64_t> scratch_offsets_;
  bool runs_once_ = false;
};

std::vector<ModelTensor> tensors_of(const graph::Graph& graph, const std::vector<graph::Graph::Port>& ports,
                                    const std::vector<OnnxPort>& types, const std::string& what) {
  std::vector<ModelTensor> tensors;
  for (size_t i = 0; i < ports.size(); ++i) {
    const graph::Value& value = graph.value(ports[i].value);
    if (value.extents.size() > Tensor::max_rank) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} '{}' has {} dimensions, and tensors have up to {}", what,
                              printable_name(ports[i].name), value.extents.size(), Tensor::max_rank));
    }
    tensors.push_back({ports[i].name, types[i].type, value.dtype, value.extents});
  }
  return tensors;
}

}  // namespace

Instance make_instance(Context& context, const Lowered& lowered, Weights& weights) {
  Instance instance;
  const graph::Graph& graph = lowered.model.graph;
  instance.inputs = tensors_of(graph, graph.inputs(), lowered.model.inputs, "input");
  instance.outputs = tensors_of(graph, graph.outputs(), lowered.model.outputs, "output");
  Loader(context, lowered, weights).run(instance);
  instance.planned_arena = instance.use.arena;
  return instance;
}

namespace {

/// The memory with what the plan of an open step prepares, from another instance or anew.
Weights::Place prepared_of(Context& context, const Plan& plan, const OpenStep& open, const LoadedStep& call,
                           Weights& weights) {
  const std::string name = name_of_prepared(plan, open.constants);
  if (Weights::Place known = weights.find(name); known.at != nullptr) return known;
  Block block;
  (void)block.reserve(plan.prepared_bytes());
  block.allocate(context);
  plan.prepare_weights(nullptr, call.addresses, block.at(0));
  block.wait();  // runs may be on other streams
  const auto memory = std::make_shared<const DeviceMemory>(block.take());
  weights.add(memory, {{name, 0}});
  return weights.find(name);
}

}  // namespace

void make_exact_plans(Context& context, const Instance& instance) {
  try {
    std::vector<Request> requests;
    for (const OpenStep& open : instance.open) requests.push_back(instance.calls[open.step].plan.request());
    context.prepare(requests);
  } catch (const std::exception&) {
    // The open kernels serve.
  }
}

bool take_exact_plans(Context& context, Instance& instance, Weights& weights, const std::function<bool(int64_t)>& grow,
                      bool may_prepare) {
  // Steps whose plans need more workspace share what lies behind the rest: they run one by one.
  const int64_t behind = aligned(instance.planned_arena);
  const auto take = [&](const OpenStep& open, const Plan& plan) {
    LoadedStep& call = instance.calls[open.step];
    const int64_t bytes = workspace_of(plan);
    const bool needs_more = bytes > open.workspace;
    if (needs_more && !grow(behind + bytes)) return false;
    Weights::Place prepared;
    if (prepares(plan)) prepared = prepared_of(context, plan, open, call, weights);
    std::string variant = plan.variant(), source = plan.source();
    std::vector<SharedMemory>& reads = instance.reads;
    if (prepared.memory && std::find(reads.begin(), reads.end(), prepared.memory) == reads.end())
      reads.push_back(prepared.memory);
    // Nothing throws from here on.
    call.plan = plan;
    call.prepared = prepared.at;
    if (needs_more) {
      call.workspace = behind;
      instance.use.arena = std::max(instance.use.arena, behind + bytes);
    }
    instance.steps[open.step].variant = std::move(variant);
    instance.steps[open.step].source = std::move(source);
    return true;
  };
  bool has_taken = false;
  std::erase_if(instance.open, [&](const OpenStep& open) {
    Plan& held = instance.calls[open.step].plan;
    if (!held.is_superseded()) return false;
    try {
      const Plan plan = context.plan(held.request());
      if (plan.variant() == held.variant()) {  // the better one was withdrawn meanwhile, and is made again
        held = plan;
        return false;
      }
      if (!may_prepare && prepares(plan) && weights.find(name_of_prepared(plan, open.constants)).at == nullptr) {
        return false;
      }
      const bool is_taken = take(open, plan);
      has_taken = has_taken || is_taken;
      return !is_taken || !plan.is_open();  // of a better open kernel, there may be a better plan still
    } catch (const std::exception&) {
      return true;  // the open kernel serves as before
    }
  });
  return has_taken;
}

int64_t Instance::own_bytes() const {
  int64_t bytes = 0;
  for (const SharedMemory& memory : reads) bytes += memory.use_count() == 1 ? static_cast<int64_t>(memory->size()) : 0;
  return bytes;
}

}  // namespace kiln::models
