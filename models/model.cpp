#include "kiln/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <list>
#include <system_error>
#include <utility>

#include "instance.h"
#include "kiln/base/as_error.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/cuda_graph.h"
#include "kiln/memory.h"
#include "kiln/models/lower.h"
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

/// An error of KILN_CHECK_NUMERICS with the nodes of the step; any other as it is.
Error with_nodes(const Error& error, const std::vector<std::string>& nodes) {
  if (error.code() != ErrorCode::not_finite || nodes.empty()) return error;
  std::vector<std::string> names;
  for (const std::string& node : nodes) names.push_back(printable_name(node));
  return {error.code(), fmt::format("'{}': {}", fmt::join(names, "', '"), error.message()), error.hint()};
}

std::vector<ModelTensor> tensors_of(const OnnxInputs& inputs) {
  std::vector<ModelTensor> tensors;
  for (const OnnxInput& input : inputs.all()) {
    ModelTensor& tensor = tensors.emplace_back(ModelTensor{input.name, input.type, input.dtype, {}});
    for (const OnnxExtent& extent : input.extents) tensor.extents.push_back(extent.fixed.value_or(-1));
  }
  return tensors;
}

bool has_extents(const models::Instance& instance, const std::vector<graph::Extents>& extents) {
  return std::equal(instance.inputs.begin(), instance.inputs.end(), extents.begin(), extents.end(),
                    [](const ModelTensor& input, const graph::Extents& wanted) { return input.extents == wanted; });
}

}  // namespace

std::optional<ModelLayout> parse_model_layout(std::string_view word) {
  if (word == "auto") return ModelLayout::automatic;
  if (word == "nchw") return ModelLayout::channels_first;
  return word == "nhwc" ? std::optional(ModelLayout::channels_last) : std::nullopt;
}

struct Model::Impl {
  Impl(Context& on, std::string file, ModelOptions how)
      : context(&on), path(std::move(file)), options(std::move(how)) {}

  /// Reads what the file declares, and makes the first size where all extents are known.
  void load();
  /// Makes the size of these extents the one in use. Changes nothing if it throws an Error.
  void use(const ResolvedInputs& wanted);
  /// Makes what a size needs. `file`: null to read it again.
  void add(const ResolvedInputs& wanted, const OnnxFile* file);
  models::Lowered lowered(const ResolvedInputs& wanted, const OnnxFile* file);
  /// make_instance() of models/, whose errors name the file here.
  models::Instance instance_of(const models::Lowered& lowered);
  void allocate_arena(int64_t bytes);
  void give_up_sizes();
  void use_first();

  /// The size in use; one without extents where there is none.
  const models::Instance& now() const { return instances.empty() ? unsized : instances.front(); }
  bool is_open() const { return declared.has_open_batch() || declared.has_open_extents(); }
  void take_shapes_of(std::span<const NamedTensor> inputs, Stream stream);
  /// A run on the tensors at `bases`: as a graph if they were there before, else kernel by kernel.
  void run(Stream stream);
  void take_exact_plans(Stream stream);
  void launch_calls(Stream stream);
  void launch_graph(models::KnownRun& run, Stream stream);
  void count_graphs();

  Context* context;
  std::string path;
  std::vector<std::string> files;  // of the model: sizes are of one
  FileStates states;
  ModelOptions options;
  graph::Cost cost = models::estimated_cost();  // of one size helps the next
  OnnxInputs declared;
  models::Weights weights;
  std::list<models::Instance> instances;  // of the sizes that are kept, the one in use first
  models::Instance unsized;               // its inputs are those that the file declares
  std::optional<DeviceMemory> arena;      // of all sizes: one runs at a time
  bool was_captured = false;              // a run, into a graph of the caller's
  std::vector<const void*> bases;         // of a run: inputs, outputs, and the arena
  ModelGraphs graphs;
};

void Model::Impl::load() {
  try {
    const OnnxFile file(path);
    files = {path};
    states = states_of(files);
    declared = file.inputs(options.dtype);
    unsized.inputs = tensors_of(declared);
    unsized.batch = 0;
    const bool waits_for_shapes = options.shapes.empty() && declared.has_open_extents();
    if (!waits_for_shapes) add(declared.resolve(options.batch, options.shapes), &file);
    path = std::filesystem::absolute(path);  // the program may go to another folder
    for (std::string& each : files) each = std::filesystem::absolute(each);
  } catch (...) {
    throw_as_error(path);
  }
}

void Model::Impl::use(const ResolvedInputs& wanted) {
  const auto known = std::find_if(instances.begin(), instances.end(), [&](const models::Instance& instance) {
    return has_extents(instance, wanted.extents);
  });
  if (known != instances.end()) {
    instances.splice(instances.begin(), instances, known);
    instances.front().batch = wanted.batch;  // which no input may follow
    return use_first();
  }
  try {
    add(wanted, nullptr);
  } catch (...) {
    throw_as_error(path);
  }
}

void Model::Impl::add(const ResolvedInputs& wanted, const OnnxFile* file) {
  const auto start = std::chrono::steady_clock::now();
  const CompileCount before = context->compiles();
  const models::Lowered model = lowered(wanted, file);
  models::Instance instance = instance_of(model);
  instance.batch = wanted.batch;
  const CompileCount after = context->compiles();
  instance.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  instance.cost.compiled = after.kernels - before.kernels;
  instance.cost.compile_seconds = after.seconds - before.seconds;
  allocate_arena(instance.use.arena);
  files = model.model.files;
  states = states_of(files);
  instances.push_front(std::move(instance));
  give_up_sizes();
  use_first();
}

models::Lowered Model::Impl::lowered(const ResolvedInputs& wanted, const OnnxFile* file) {
  if (states_of(files) != states) {
    throw Error(ErrorCode::io_error,
                fmt::format("{}, or its data beside it, was written or removed since the model was loaded", path),
                "load it again");
  }
  ModelOptions how = options;
  how.batch.reset();  // shapes of all inputs say it
  how.shapes.clear();
  for (size_t i = 0; i < wanted.extents.size(); ++i) how.shapes[declared.all()[i].name] = wanted.extents[i];
  models::Lowered lowered = file != nullptr ? models::lower(*file, how, cost) : models::lower(path, how, cost);
  if (lowered.model.uncovered.empty()) return lowered;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: nodes that are not covered:{}", path, uncovered_text(lowered.model.uncovered)),
              "docs/onnx.md lists what is");
}

models::Instance Model::Impl::instance_of(const models::Lowered& lowered) {
  try {
    return models::make_instance(*context, lowered, weights);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.message()), error.hint());
  }
}

void Model::Impl::allocate_arena(int64_t planned) {
  const auto bytes = static_cast<size_t>(std::max<int64_t>(planned, 1));
  if (arena && arena->size() >= bytes) return;
  // Freeing what the smaller sizes had waits for the runs that use it (cuMemFree).
  arena = DeviceMemory(*context, bytes);
  for (models::Instance& instance : instances) instance.graphs = {};
}

/// Weights that no other size reads are freed, which waits for the runs that read them (cuMemFree).
void Model::Impl::give_up_sizes() {
  int64_t bytes = 0;
  size_t kept = 0;
  const auto first_given_up = std::find_if(instances.begin(), instances.end(), [&](const models::Instance& instance) {
    bytes += instance.own_bytes();
    return kept++ > 0 && (kept > options.kept_sizes || bytes > options.kept_bytes);
  });
  instances.erase(first_given_up, instances.end());
}

void Model::Impl::use_first() {
  models::Instance& first = instances.front();
  first.use.weights = weights.bytes();
  bases.resize(first.inputs.size() + first.outputs.size() + 1);
  count_graphs();
}

void Model::Impl::count_graphs() {
  graphs.kept = 0;
  for (const models::Instance& instance : instances) graphs.kept += instance.graphs.count();
}

Model::Model(Context& context, const std::string& path, const ModelOptions& options)
    : impl_(std::make_unique<Impl>(context, path, options)) {
  std::string& no_graph = impl_->graphs.unused_because;
  if (context.records_calls()) no_graph = "calls are recorded (KILN_RECORD)";
  if (context.checks_numerics()) no_graph = "operands and results are looked at (KILN_CHECK_NUMERICS)";
  if (!options.use_graph) no_graph = "the model was loaded without (ModelOptions::use_graph)";
  impl_->load();
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
  return present().now().batch;
}
bool Model::has_open_batch() const {
  return present().declared.has_open_batch();
}
bool Model::has_open_extents() const {
  return present().declared.has_open_extents();
}
const std::vector<ModelTensor>& Model::declared_inputs() const {
  return present().unsized.inputs;
}
size_t Model::sizes() const {
  return present().instances.size();
}
const ModelCost& Model::cost() const {
  return present().now().cost;
}
const std::vector<ModelTensor>& Model::inputs() const {
  return present().now().inputs;
}
const std::vector<ModelTensor>& Model::outputs() const {
  return present().now().outputs;
}
const std::vector<ModelStep>& Model::steps() const {
  return present().now().steps;
}
const ModelMemory& Model::memory() const {
  return present().now().use;
}
const ModelGraphs& Model::graphs() const {
  return present().graphs;
}

void Model::set_shapes(const InputShapes& shapes) {
  Impl& model = present();
  model.use(model.declared.resolve(std::nullopt, shapes));
}

void Model::set_batch(int64_t batch) {
  Impl& model = present();
  if (model.instances.empty()) return model.use(model.declared.resolve(batch, {}));
  std::vector<graph::Extents> extents;
  for (const ModelTensor& input : model.now().inputs) extents.push_back(input.extents);
  model.use(model.declared.resolve(batch, model.declared.with_batch(extents, batch)));
}

void Model::run(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs, Stream stream) {
  Impl& model = present();
  const CurrentContext current(*model.context);  // once for all steps
  const bool is_sized = !model.instances.empty() && models::have_extents(model.now().inputs, inputs);
  if (model.is_open() && !is_sized) model.take_shapes_of(inputs, stream);
  const models::Instance& now = model.now();
  const void** const bases = model.bases.data();
  models::take(*model.context, now.inputs, inputs, "input", bases);
  models::take(*model.context, now.outputs, outputs, "output", bases + now.inputs.size());
  models::check_apart(inputs, outputs);
  model.take_exact_plans(stream);
  model.bases.back() = model.arena->data();
  model.run(stream);
}

void Model::Impl::take_exact_plans(Stream stream) {
  models::Instance& now = instances.front();
  if (now.open.empty()) return;
  const bool captured = is_captured(*context, stream);
  if (captured) models::make_exact_plans(*context, now);  // the graph keeps what it is made of
  const auto grow = [&](int64_t bytes) {
    if (static_cast<int64_t>(arena->size()) >= bytes) return true;
    if (captured || was_captured) return false;  // a graph of the caller's has the addresses of the arena
    try {
      allocate_arena(bytes);
    } catch (const Error&) {
      return false;
    }
    return true;
  };
  if (!models::take_exact_plans(*context, now, weights, grow, !captured)) return;
  now.graphs = {};
  if (!captured) give_up_sizes();  // frees weights
  use_first();
}

void Model::Impl::take_shapes_of(std::span<const NamedTensor> inputs, Stream stream) {
  InputShapes shapes = models::shapes_of(unsized.inputs, inputs);
  for (const OnnxInput& input : declared.all()) {  // one without dimensions is given as one of one element
    std::vector<int64_t>& shape = shapes[input.name];
    const bool is_one_element = input.has_rank && input.extents.empty() && shape == std::vector<int64_t>{1};
    if (is_one_element) shape.clear();
  }
  const ResolvedInputs wanted = declared.resolve(std::nullopt, shapes);
  const bool is_kept = std::any_of(instances.begin(), instances.end(), [&](const models::Instance& instance) {
    return has_extents(instance, wanted.extents);
  });
  if (!is_kept && is_captured(*context, stream)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the model is not ready for inputs of these extents, and the stream is captured", path),
                "Model::set_shapes() makes it ready, before the capture");
  }
  use(wanted);
}

void Model::Impl::run(Stream stream) {
  const bool captured = is_captured(*context, stream);
  was_captured = was_captured || captured;
  if (!graphs.unused_because.empty() || captured) return launch_calls(stream);
  models::RunCudaGraphs& known = instances.front().graphs;
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
  models::Instance& now = instances.front();
  for (size_t s = 0; s < now.calls.size(); ++s) {
    models::LoadedStep& step = now.calls[s];
    for (const models::MovingOperand& operand : step.moving) {
      step.addresses[operand.argument] = Address(address(operand.base, operand.offset));
    }
    auto* const space = static_cast<std::byte*>(arena->data());
    void* const workspace = step.workspace ? space + *step.workspace : nullptr;
    try {
      if (step.prepared != nullptr) {
        step.plan.run_prepared(stream, step.addresses, step.prepared, workspace, step.values);
      } else {
        step.plan.run(stream, step.addresses, workspace, step.values);
      }
    } catch (const Error& error) {
      throw with_nodes(error, now.steps[s].nodes);
    }
  }
}

}  // namespace kiln
