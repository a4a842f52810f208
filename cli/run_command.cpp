// kiln run: run layers with what the cache has for them, as an application would.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "checks.h"
#include "commands.h"
#include "database.h"
#include "device_choice.h"
#include "input.h"
#include "kiln/base/error.h"
#include "kiln/checking/check.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/event.h"
#include "kiln/device/memory.h"
#include "kiln/device/nvrtc.h"
#include "kiln/device/stream.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/runtime/settings.h"
#include "kiln/tuner/trial.h"
#include "kiln/version.h"
#include "output.h"
#include "table.h"
#include "words.h"

namespace kiln::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double full_check_flops = 2e7;  // beyond this the reference would take seconds: sample its outputs
constexpr int64_t sampled_outputs = 200;
constexpr uint64_t seed = 1;

struct RunOptions {
  Input input;
  DeviceChoice device;
  std::string database;
  std::vector<std::string> packs;
  std::vector<std::string> bundles;
  bool check = false;
  int samples = 20;
  Output output;
};

RunValues values_for(const Request& request) {
  RunValues values = check_values(request);
  if (request.blend.alpha == Scale::any) values.alpha = 1.25f;
  if (request.blend.beta == Scale::any) values.beta = 0.5f;
  if (request.has(EpilogueStage::clip)) {
    values.clip_lo = -0.5f;
    values.clip_hi = 6.0f;
  }
  values.user.fill(0.5f);
  if (request.dynamic_batch) values.n = request.batch();
  return values;
}

// A layer's operands on the device, and on the host as they were before it ran.
class LayerRun {
 public:
  LayerRun(std::shared_ptr<const device::ContextHandle> device, const Request& request, const Plan& plan)
      : device_(std::move(device)), request_(request), plan_(plan), values_(values_for(request)) {
    for (const Operand& operand : request_.operands) {
      host_.push_back(is_read(request_, operand.name)
                          ? reference::filled(request_, operand, reference::Values::uniform, seed + host_.size())
                          : reference::poisoned(operand.spec));
      buffers_.push_back(device::upload(device_, host_.back()));
      addresses_.emplace_back(reinterpret_cast<const void*>(buffers_.back().address()));
    }
    workspace_ = device::Buffer(device_, static_cast<size_t>(plan_.workspace_bytes()));
  }

  /// Runs once and compares with the reference: "ok", with how many outputs where that is not all; or what was wrong.
  struct Checked {
    bool right = false;
    std::string text;
  };
  Checked check() {
    enqueue(nullptr);
    device_->synchronize();
    reference::Bindings bindings;
    bindings.alpha = values_.alpha;
    bindings.beta = values_.beta;
    bindings.clip_lo = values_.clip_lo;
    bindings.clip_hi = values_.clip_hi;
    bindings.scalars = values_.scalars;
    bindings.integers = values_.integers;
    for (size_t i = 0; i < host_.size(); ++i) bindings.operands[request_.operands[i].name] = host_[i];
    Checked checked;
    for (size_t i = 0; i < host_.size(); ++i) {
      const std::string& name = request_.operands[i].name;
      if (!is_written(request_, name)) continue;
      const Checked output = check_output(bindings, i);
      if (!output.right || checked.text.empty() || name == result_of(request_).name) checked = output;
      if (!output.right) break;
    }
    return checked;
  }

  /// As check(), where user code makes the result: by the tuner's check, of which the trusted program is a part.
  Checked check_user_code(const execution::CompiledProgram& trusted) {
    checking::CheckOptions options;
    options.seed = seed;
    checking::Checker checker(device_, request_, options);
    checking::Verdict verdict = checker.trust({device_, trusted, checking::trusted_operand_names(request_)});
    if (verdict.passed)
      verdict = checker.check({[this](auto&&... arguments) { run(arguments...); }, plan_.workspace_bytes()});
    return verdict.passed ? Checked{true, "ok"} : Checked{false, "WRONG: " + verdict.text};
  }

  /// Median device time of `samples` runs in seconds, after a warm-up. Caches are as the last run left them.
  double time(int samples) {
    const device::Stream stream(device_);
    const device::Event start(device_), stop(device_);
    std::vector<double> seconds;
    for (int i = 0; i <= samples; ++i) {
      start.record(stream.raw());
      enqueue(stream.raw());
      stop.record(stream.raw());
      stop.synchronize();
      if (i > 0) seconds.push_back(stop.elapsed_ms(start) * 1e-3);
    }
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
    return seconds[seconds.size() / 2];
  }

 private:
  Checked check_output(const reference::Bindings& bindings, size_t operand) const {
    const auto& [name, spec] = request_.operands[operand];
    const auto output = device::download<std::byte>(*device_, buffers_[operand].address(), host_[operand].size());
    if (operation(request_.operation).work(request_).flops <= full_check_flops) {
      const auto mismatch = reference::compare(request_, bindings, output, name);
      return mismatch ? Checked{false, "WRONG: " + mismatch->text()} : Checked{true, "ok"};
    }
    const auto coordinates = reference::sample_coordinates(spec, sampled_outputs, seed);
    const auto mismatch = reference::compare_at(request_, bindings, output, coordinates, name);
    return mismatch ? Checked{false, "WRONG: " + mismatch->text()}
                    : Checked{true, fmt::format("ok at {} of {}", coordinates.size(), spec.elements())};
  }

  // The plan as the tuner's check runs a variant.
  void run(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands, RunValues values, int64_t n,
           cuda_abi::CUdeviceptr workspace) const {
    std::vector<Address> addresses;
    for (const cuda_abi::CUdeviceptr address : operands) addresses.emplace_back(reinterpret_cast<const void*>(address));
    if (request_.dynamic_batch) values.n = n;
    plan_.run(stream, addresses, reinterpret_cast<void*>(workspace), values);
  }

  void enqueue(Stream stream) { plan_.run(stream, addresses_, reinterpret_cast<void*>(workspace_.address()), values_); }

  std::shared_ptr<const device::ContextHandle> device_;
  const Request& request_;
  const Plan& plan_;
  RunValues values_;
  std::vector<std::vector<std::byte>> host_;
  std::vector<device::Buffer> buffers_;
  std::vector<Address> addresses_;
  device::Buffer workspace_;
};

ContextOptions context_options(const RunOptions& options) {
  ContextOptions context;
  context.environment = options.device.environment();
  context.device = options.device.ordinal();
  if (!options.database.empty()) context.cache = options.database;
  context.packs = options.packs;
  context.bundles = options.bundles;
  return context;
}

// Compiles what the check of user code needs. NVRTC is looked for only then: what a bundle holds runs without.
class CheckTools {
 public:
  CheckTools(const Environment& environment, const device::DeviceInfo& info)
      : environment_(environment), info_(info), catalogue_(catalogue_of(environment)) {}

  const Catalogue& catalogue() const { return catalogue_; }

  execution::CompiledProgram trusted(const Request& request) const {
    const auto nvrtc = device::Nvrtc::open({environment_.nvrtc});
    const Target target = execution::target_for(info_.cc_major, info_.cc_minor, *nvrtc);
    return execution::compile(*nvrtc, catalogue_.trusted_program(request, target), target);
  }

 private:
  const Environment& environment_;
  device::DeviceInfo info_;
  Catalogue catalogue_;
};

// What became of one layer.
struct LayerResult {
  bool right = true;
  std::string failure;  // why it did not run; then nothing below is set but `right`
  std::string variant, choice;
  double seconds = 0, roofline_seconds = 0;
  std::string check;  // empty if it was not asked for
};

LayerResult run_layer(Context& context, const std::shared_ptr<const device::ContextHandle>& device,
                      const Request& request, const RunOptions& options, const CheckTools& tools) {
  const Plan plan = context.plan(request);
  LayerRun layer(device, request, plan);
  LayerRun::Checked checked{true, ""};
  if (options.check) checked = request.user_epilogue ? layer.check_user_code(tools.trusted(request)) : layer.check();
  const double seconds = layer.time(device->driver().is_emulated() ? 1 : options.samples);
  return {checked.right, "", plan.variant(), plan.source(), seconds, context.explain(request).roofline_seconds,
          checked.text};
}

// A layer that cannot be run, or does not fit into memory, is a wrong one and not the end.
LayerResult run_or_fail(Context& context, const std::shared_ptr<const device::ContextHandle>& device,
                        const Request& request, const RunOptions& options, const CheckTools& tools) {
  std::string failure;
  try {
    return run_layer(context, device, request, options, tools);
  } catch (const Error& error) {
    failure = error.what();
  } catch (const std::bad_alloc&) {
    failure = "out of memory on this machine";
  }
  LayerResult result;
  result.right = false;
  result.failure = failure;
  return result;
}

std::vector<std::string> row_of(const tuner::Job& job, const LayerResult& layer, bool check) {
  std::vector<std::string> row = {summary(job.request), std::to_string(job.count)};
  if (layer.failure.empty()) {
    for (std::string cell : {layer.variant, time_text(layer.seconds),
                             percent_text(layer.roofline_seconds / layer.seconds), layer.choice, layer.check}) {
      row.push_back(std::move(cell));
    }
  } else {
    for (std::string cell :
         {"FAILED: " + layer.failure, std::string("-"), std::string("-"), std::string("-"), std::string("-")}) {
      row.push_back(std::move(cell));
    }
  }
  if (!check) row.pop_back();
  return row;
}

Json json_of(const tuner::Job& job, const LayerResult& layer, bool check) {
  const bool ran = layer.failure.empty();
  return {{"request", job.request.key()},
          {"count", job.count},
          {"variant", ran ? Json(layer.variant) : Json(nullptr)},
          {"choice", ran ? Json(layer.choice) : Json(nullptr)},
          {"seconds", ran ? Json(layer.seconds) : Json(nullptr)},
          {"roofline_seconds", ran ? Json(layer.roofline_seconds) : Json(nullptr)},
          {"check", ran && check ? Json(layer.check) : Json(nullptr)},
          {"right", check || !ran ? Json(layer.right) : Json(nullptr)},
          {"error", layer.failure}};
}

// What says in the database that a variant was found wrong; nothing for one of a bundle that this library does not
// have.
std::optional<cache::Record> bar_of(const Request& request, const LayerResult& layer, const device::DeviceInfo& device,
                                    const Catalogue& catalogue) {
  const size_t end = layer.variant.find(' ');
  cache::Record bar;
  bar.algorithm = layer.variant.substr(0, end);
  const std::optional<std::string> digest = catalogue.digest(bar.algorithm);
  if (!digest || end == std::string::npos) return std::nullopt;
  bar.algorithm_digest = *digest;
  bar.config = layer.variant.substr(end + 1);
  bar.request = request.key();
  bar.device = device.id();
  bar.outcome = tuner::to_string(tuner::Outcome::wrong_result);
  bar.kind = device.emulated ? cache::TimeKind::modelled : cache::TimeKind::measured;
  bar.check = bar.error = layer.check;
  bar.kiln_version = std::string(version());
  bar.created_ms = cache::utc_now_ms();
  return cache::with_clean_texts(std::move(bar));
}

// What was found wrong serves nobody from then on (docs/cache-format.md). Returns how many records say so.
size_t store_bars(const std::vector<cache::Record>& bars, const std::optional<std::string>& path,
                  const device::DeviceInfo& device) {
  std::error_code unknown;
  if (bars.empty() || !path || !std::filesystem::exists(*path, unknown)) return 0;
  cache::Database database = open_or_fail(*path, cache::OpenMode::read_write);
  database.put_device({device.id(), device.name, device.cc_major, device.cc_minor, device.sms, device.emulated});
  database.insert(bars);
  return bars.size();
}

int run_layers(const RunOptions& options) {
  const Workload workload = read_workload(options.input);
  for (const std::string& file : options.packs) require_file(file);
  for (const std::string& file : options.bundles) require_file(file);
  const ContextOptions context_options_ = context_options(options);
  const auto device = device::ContextHandle::acquire(
      device::Device(device::Driver::open({context_options_.environment->driver}), context_options_.device));
  Context context(context_options_);
  const CheckTools tools(*context_options_.environment, device->device().info());

  const bool emulated = device->driver().is_emulated();
  std::vector<std::string> headings = {
      "layer", ">count", "variant", emulated ? ">modelled time" : ">measured time", ">of roofline", "choice"};
  if (options.check) headings.emplace_back("check");
  Table table(std::move(headings));
  size_t wrong = 0;
  std::vector<cache::Record> bars;
  Json layers = Json::array();
  for (const tuner::Job& job : workload.jobs) {
    const LayerResult layer = run_or_fail(context, device, job.request, options, tools);
    table.add(row_of(job, layer, options.check));
    layers.push_back(json_of(job, layer, options.check));
    wrong += layer.right ? 0 : 1;
    if (layer.right || !layer.failure.empty()) continue;
    if (auto bar = bar_of(job.request, layer, device->device().info(), tools.catalogue()))
      bars.push_back(std::move(*bar));
  }
  const std::optional<std::string> database = cache_path(
      options.database.empty() ? std::nullopt : std::optional(options.database), *context_options_.environment);
  const size_t barred = store_bars(bars, database, device->device().info());
  const int exit_code = wrong == 0 ? success : failed_check;
  if (options.output.json) {
    print_json({{"device", context.device_id()},
                {"time", emulated ? "modelled" : "measured"},
                {"layers", layers},
                {"barred", barred}});
    return exit_code;
  }
  fmt::print("{}\n{}", options.device.heading(device->device().info(), context.device_description()),
             options.output.print(table));
  if (options.check)
    fmt::print("\n{} layers agree with the reference, {} do not\n", workload.jobs.size() - wrong, wrong);
  if (barred > 0) fmt::print("{} variants are not used any more: {} holds what was found\n", barred, *database);
  return exit_code;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "run layers with the variants that the cache has for them");
  options->input.add_to(*command);
  options->device.add_to(*command);
  add_database_option(*command, options->database);
  command->add_option("--pack", options->packs, "packs to use beside the database");
  command->add_option("--bundle", options->bundles, "bundles of compiled variants to use");
  command->add_flag("--check", options->check, "compare every layer's output with the double-precision reference");
  command->add_option("--samples", options->samples, "timed runs on a real device; the median is shown (default 20)")
      ->check(whole_number(1, 10'000));
  options->output.add_to(*command);
  command->footer("Example: kiln run --check examples/models/resnet18.onnx");
  command->callback([options, &exit_code] { exit_code = run_layers(*options); });
}

}  // namespace kiln::cli
