#include "kiln/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "kiln/base/as_error.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/cuda_graph.h"
#include "kiln/memory.h"
#include "kiln/models/lower.h"
#include "loaded_batch.h"
#include "ports.h"
#include "weights.h"

namespace kiln {
namespace {

std::string uncovered_text(const std::vector<UncoveredNode>& nodes) {
  std::string text;
  for (const UncoveredNode& node : nodes)
    text += fmt::format("\n  node '{}' ({}): {}", printable_name(node.name), printable_name(node.operation),
                        printable_line(node.reason));
  return text;
}

/// States that tell files from others that replaced them; (0, {}) of one that is not there.
using FileStates = std::vector<std::pair<std::uintmax_t, std::filesystem::file_time_type>>;

FileStates states_of(const std::vector<std::string>& files) {
  FileStates states;
  for (const std::string& file : files) {
    std::error_code failure;
    const std::uintmax_t bytes = std::filesystem::file_size(file, failure);
    const auto written = std::filesystem::last_write_time(file, failure);
    states.emplace_back(failure ? 0 : bytes, failure ? std::filesystem::file_time_type{} : written);
  }
  return states;
}

}  // namespace

std::optional<ModelLayout> parse_model_layout(std::string_view word) {
  if (word == "auto") return ModelLayout::automatic;
  if (word == "nchw") return ModelLayout::channels_first;
  return word == "nhwc" ? std::optional(ModelLayout::channels_last) : std::nullopt;
}

struct Model::Impl {
  Impl(Context& on, std::string file, ModelOptions how) : context(&on), path(std::move(file)), options(how) {}

  /// Makes what another batch needs, and then that batch the one that runs. Changes nothing if it throws an Error.
  void load(std::optional<int64_t> wanted);
  void load_batch(std::optional<int64_t> wanted);
  /// load_batch() of models/, whose errors name the file here.
  models::LoadedBatch loaded(const models::Lowered& lowered);
  void allocate_arena(int64_t bytes);
  /// A run on the tensors at `bases`: as a graph if they were there before, else kernel by kernel.
  void run(Stream stream);
  void launch_calls(Stream stream);
  void launch_graph(models::KnownRun& run, Stream stream);
  void count_graphs();

  Context* context;
  std::string path;
  std::vector<std::string> files;  // of the model: batches are of one
  FileStates states;
  ModelOptions options;
  graph::Cost cost = models::estimated_cost();  // of one batch helps the next
  std::optional<std::string> batch_input;
  models::Weights weights;
  std::map<int64_t, models::LoadedBatch> batches;
  std::map<int64_t, models::LoadedBatch>::iterator now;
  std::optional<DeviceMemory> arena;  // of all batches: one runs at a time
  std::vector<const void*> bases;     // of a run: inputs, outputs, and the arena
  ModelGraphs graphs;
};

void Model::Impl::load(std::optional<int64_t> wanted) {
  try {
    load_batch(wanted);
  } catch (...) {
    throw_as_error(path);
  }
}

void Model::Impl::load_batch(std::optional<int64_t> wanted) {
  if (states_of(files) != states) {
    throw Error(ErrorCode::io_error,
                fmt::format("{}, or its data beside it, was written or removed since the model was loaded", path),
                "load it again");
  }
  ModelOptions how = options;
  how.batch = wanted;
  const models::Lowered lowered = models::lower(path, how, cost);
  if (!lowered.model.uncovered.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: nodes that are not covered:{}", path, uncovered_text(lowered.model.uncovered)),
                "docs/onnx.md lists what is");
  }
  models::LoadedBatch batch = loaded(lowered);
  allocate_arena(batch.use.arena);
  batch_input = lowered.model.batch_input;
  if (files.empty()) {
    files = lowered.model.files;
    states = states_of(files);
    path = std::filesystem::absolute(path);  // the program may go to another folder
  }
  bases.resize(batch.inputs.size() + batch.outputs.size() + 1);
  now = batches.insert_or_assign(lowered.model.batch, std::move(batch)).first;
}

models::LoadedBatch Model::Impl::loaded(const models::Lowered& lowered) {
  try {
    return models::load_batch(*context, lowered, weights);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.message()), error.hint());
  }
}

void Model::Impl::allocate_arena(int64_t planned) {
  const auto bytes = static_cast<size_t>(std::max<int64_t>(planned, 1));
  if (arena && arena->size() >= bytes) return;
  // Freeing what the smaller batches had waits for the runs that use it (cuMemFree).
  arena = DeviceMemory(*context, bytes);
  for (auto& [size, batch] : batches) batch.graphs = {};
  count_graphs();
}

void Model::Impl::count_graphs() {
  graphs.kept = 0;
  for (const auto& [size, batch] : batches) graphs.kept += batch.graphs.count();
}

Model::Model(Context& context, const std::string& path, const ModelOptions& options)
    : impl_(std::make_unique<Impl>(context, path, options)) {
  std::string& no_graph = impl_->graphs.unused_because;
  if (context.records_calls()) no_graph = "calls are recorded (KILN_RECORD)";
  if (!options.use_graph) no_graph = "the model was loaded without (ModelOptions::use_graph)";
  impl_->load(options.batch);
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

int64_t Model::batch() const {
  return present().now->first;
}
bool Model::has_open_batch() const {
  return batch_input().has_value();
}
const std::optional<std::string>& Model::batch_input() const {
  return present().batch_input;
}
const std::vector<ModelTensor>& Model::inputs() const {
  return present().now->second.inputs;
}
const std::vector<ModelTensor>& Model::outputs() const {
  return present().now->second.outputs;
}
const std::vector<ModelStep>& Model::steps() const {
  return present().now->second.steps;
}
const ModelMemory& Model::memory() const {
  return present().now->second.use;
}
const ModelGraphs& Model::graphs() const {
  return present().graphs;
}

void Model::set_batch(int64_t batch) {
  Impl& model = present();
  const auto known = model.batches.find(batch);
  if (known == model.batches.end()) return model.load(batch);
  model.now = known;
}

void Model::run(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs, Stream stream) {
  Impl& model = present();
  const CurrentContext current(*model.context);  // once for all steps
  models::LoadedBatch& batch = model.now->second;
  const void** const bases = model.bases.data();
  models::take(*model.context, batch.inputs, inputs, "input", bases);
  models::take(*model.context, batch.outputs, outputs, "output", bases + batch.inputs.size());
  models::check_apart(inputs, outputs);
  model.bases.back() = model.arena->data();
  model.run(stream);
}

void Model::Impl::run(Stream stream) {
  if (!graphs.unused_because.empty() || is_captured(*context, stream)) return launch_calls(stream);
  models::RunCudaGraphs& known = now->second.graphs;
  if (models::KnownRun* const run = known.find(bases)) return launch_graph(*run, stream);
  launch_calls(stream);
  known.add(bases);
  count_graphs();
}

void Model::Impl::launch_graph(models::KnownRun& run, Stream stream) {
  if (run.graph) return run.graph->launch(stream);
  try {
    CudaGraph graph(*context, [this](Stream captured) { launch_calls(captured); });
    graph.launch(stream);
    run.graph = std::move(graph);
    count_graphs();
  } catch (const Error& error) {
    launch_calls(stream);  // which throws where a graph is not the trouble
    graphs.unused_because = error.message();
  }
}

void Model::Impl::launch_calls(Stream stream) {
  const auto address = [&](size_t base, int64_t offset) { return static_cast<const std::byte*>(bases[base]) + offset; };
  for (models::LoadedStep& step : now->second.calls) {
    for (const models::MovingOperand& operand : step.moving) {
      step.addresses[operand.argument] = Address(address(operand.base, operand.offset));
    }
    auto* const space = static_cast<std::byte*>(arena->data());
    void* const workspace = step.workspace ? space + *step.workspace : nullptr;
    if (step.prepared != nullptr) {
      step.plan.run_prepared(stream, step.addresses, step.prepared, workspace, step.values);
    } else {
      step.plan.run(stream, step.addresses, workspace, step.values);
    }
  }
}

}  // namespace kiln
