// kiln run: run layers with what the cache has for them, as an application would.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "device_choice.h"
#include "input.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/checking/check.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/event.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/settings.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/device_timer.h"
#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/timing.h"
#include "launches.h"
#include "layer_table.h"
#include "modelled_times.h"
#include "output.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

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

ContextOptions context_options(const RunOptions& options) {
  ContextOptions context;
  context.environment = options.device.environment();
  context.device = options.device.ordinal();
  if (!options.database.empty()) context.cache = options.database;
  context.packs = options.packs;
  context.bundles = options.bundles;
  return context;
}

// Makes what a check may need besides the plan. NVRTC is looked for only then: what a bundle holds runs without.
class CheckTools {
 public:
  CheckTools(const Environment& environment, std::shared_ptr<const device::ContextHandle> device)
      : environment_(environment), device_(std::move(device)), catalogue_(catalogue_of(environment)) {
    if (const auto kept = kernel_store(std::nullopt, environment)) kernels_.emplace(*kept);
  }

  const Catalogue& catalogue() const { return catalogue_; }

  /// The trusted variant of `request`. Throws Error(missing_library, unsupported) where it cannot be compiled here.
  execution::Executable trusted(const Request& request) {
    if (!nvrtc_) {
      const device::DeviceInfo& info = device_->device().info();
      const auto nvrtc = device::Nvrtc::open({environment_.nvrtc});
      target_ = execution::target_for(info.cc_major, info.cc_minor, *nvrtc);
      nvrtc_ = nvrtc;
    }
    const Program program = checking::trusted_program(catalogue_, request, target_);
    return {device_, execution::compile(*nvrtc_, program, target_, kernels_ ? &*kernels_ : nullptr),
            checking::trusted_operand_names(request)};
  }

 private:
  const Environment& environment_;
  std::shared_ptr<const device::ContextHandle> device_;
  Catalogue catalogue_;
  std::optional<store::FileStore> kernels_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;
  Target target_;
};

bool cannot_compile(const Error& error) {
  return error.code() == ErrorCode::missing_library || error.code() == ErrorCode::unsupported;
}

struct Checked {
  bool right = false;
  std::string text;  // "ok", with how many outputs where that is not all; or what was wrong
};

// By the check that tuning makes. Where nothing can be compiled, large layers of a bundle are compared with the
// reference alone.
Checked check(checking::Checker& checker, const Plan& plan, CheckTools& tools) {
  const checking::CheckOptions options;
  const Request& request = plan.request();
  const auto said = [](const checking::Verdict& verdict, const std::string& ok) {
    return verdict.passed ? Checked{true, ok} : Checked{false, "WRONG: " + verdict.text};
  };
  std::optional<execution::Executable> trusted;
  if (checking::needs_trusted(request, options)) {
    try {
      trusted.emplace(tools.trusted(request));
    } catch (const Error& error) {
      if (!cannot_compile(error) || request.user_code) throw;
      const int64_t outputs = result_of(request).spec.elements();
      return said(checker.check_with_reference(checkable(plan)),
                  fmt::format("ok at {} of {}", std::min(options.samples, outputs), outputs));
    }
  }
  if (trusted) {
    const checking::Verdict verdict = checker.trust(*trusted);
    if (!verdict.passed) {
      throw Error(ErrorCode::internal,
                  fmt::format("the trusted variant of {} failed: {}", request.key(), verdict.text));
    }
  }
  return said(checker.check(checkable(plan)), "ok");
}

// Whether the device ran what it knows no time of: an emulated one, without the clock that the instructions need.
bool has_no_time(const Error& error) {
  return error.code() == ErrorCode::unsupported && error.message().starts_with(device::not_timed);
}

// Result of one layer.
struct LayerResult {
  std::string failure{};  // why it did not run; then nothing below is set
  std::string variant{}, program{}, choice{};
  std::optional<double> seconds{};  // nothing if the device knows no time
  double roofline_seconds = 0;
  Json launches = Json::array();   // of an emulated device: launches_of()
  std::optional<Checked> check{};  // if it was asked for

  bool right() const { return failure.empty() && (!check || check->right); }
};

LayerResult run_layer(Context& context, const std::shared_ptr<const device::ContextHandle>& device,
                      const Request& request, const RunOptions& options, CheckTools& tools) {
  const Plan plan = context.plan(request);
  LayerResult result{.variant = plan.variant(), .program = plan.program(), .choice = plan.source()};
  result.roofline_seconds = context.explain(request).roofline_seconds;
  const auto time = [&](const checking::DeviceOperands& operands) {
    LayerResult timed = result;
    const int samples = device->driver().is_emulated() ? 1 : options.samples;
    tuner::DeviceTimer timer(device);
    try {
      timed.seconds = tuner::summarise(timer.time(operands, checkable(plan), samples, tuner::L2::warm)).median;
    } catch (const Error& error) {
      if (!has_no_time(error)) throw;
    }
    if (device->driver().is_emulated()) timed.launches = launches_of(timer, operands, checkable(plan));
    return timed;
  };
  if (!options.check) return with_operands(device, request, time);
  checking::Checker checker(device, request, {});
  result.check = check(checker, plan, tools);
  return time(checker.timed_operands());
}

// A layer that cannot be run, or does not fit into memory, is a wrong one and not the end.
LayerResult run_or_fail(Context& context, const std::shared_ptr<const device::ContextHandle>& device,
                        const Request& request, const RunOptions& options, CheckTools& tools) {
  try {
    return run_layer(context, device, request, options, tools);
  } catch (const Error& error) {
    return {.failure = error.what()};
  } catch (const std::bad_alloc&) {
    return {.failure = "out of memory on this machine"};
  }
}

std::vector<std::string> cells_of(const LayerResult& layer, bool emulated, bool check) {
  std::vector<std::string> row;
  if (!layer.failure.empty()) {
    row = {"FAILED: " + in_one_line(layer.failure), "-", "-", "-"};
  } else {
    row = {layer.variant, layer.seconds ? time_text(*layer.seconds) : "-",
           layer.seconds ? percent_text(layer.roofline_seconds / *layer.seconds) : "-", layer.choice};
  }
  if (emulated) row.push_back(bound_text(layer.launches));
  if (check) row.push_back(layer.check ? layer.check->text : "-");
  return row;
}

Json json_of(const tuner::Job& job, const LayerResult& layer, const ModelNodes& nodes, bool check) {
  const bool ran = layer.failure.empty();
  return {{"request", job.request.key()},
          {"count", job.count},
          {"nodes", nodes.of(job.request)},
          {"variant", ran ? Json(layer.variant) : Json(nullptr)},
          {"choice", ran ? Json(layer.choice) : Json(nullptr)},
          {"seconds", ran && layer.seconds ? Json(*layer.seconds) : Json(nullptr)},
          {"roofline_seconds", ran ? Json(layer.roofline_seconds) : Json(nullptr)},
          {"launches", layer.launches},
          {"check", layer.check ? Json(layer.check->text) : Json(nullptr)},
          {"right", check || !ran ? Json(layer.right()) : Json(nullptr)},
          {"error", layer.failure}};
}

// Trial that bars a variant which was found wrong (docs/cache-format.md, "What is never used"); nothing for one of a
// bundle that this library does not have. A crash of this process bars nothing: it may be another layer's fault, and
// there is no second attempt.
std::optional<tuner::Trial> bar_of(const Request& request, const LayerResult& layer, const device::DeviceInfo& device,
                                   const Catalogue& catalogue) {
  if (!layer.check || layer.check->right) return std::nullopt;
  const size_t end = layer.variant.find(' ');
  const Choice choice{layer.variant.substr(0, end), Config::parse(layer.variant.substr(end + 1))};
  if (!catalogue.digest(choice.algorithm)) return std::nullopt;
  tuner::Apparatus apparatus;
  apparatus.device = device;
  apparatus.deterministic_time = device.emulated;
  tuner::Trial bar = tuner::begin_trial(apparatus, catalogue, request, choice);
  bar.source_digest = layer.program;
  bar.outcome = tuner::Outcome::wrong_result;
  bar.check = bar.error = layer.check->text;
  return bar;
}

int run_layers(const RunOptions& options) {
  const Workload workload = read_workload(options.input);
  require_packs(options.packs);
  require_bundles(options.bundles);
  require_database(options.database, keys_of(workload));
  const ContextOptions context_options_ = context_options(options);
  const auto device = device::ContextHandle::acquire(
      device::Device(device::Driver::open({context_options_.environment->driver}), context_options_.device));
  Context context(context_options_);
  CheckTools tools(*context_options_.environment, device);

  const bool emulated = device->driver().is_emulated();
  std::vector<std::string> headings = {"variant", emulated ? ">modelled time" : ">measured time", ">of roofline",
                                       "choice"};
  if (emulated) headings.emplace_back("bound by");
  if (options.check) headings.emplace_back("check");
  LayerTable table(workload.nodes, headings);
  size_t wrong = 0;
  PredictionNotes predictions(device->device().info().name);
  LaunchClocks clocks(device->device().info().name);
  std::vector<tuner::Trial> bars;
  Json layers = Json::array();
  for (const tuner::Job& job : workload.jobs) {
    const LayerResult layer = run_or_fail(context, device, job.request, options, tools);
    table.add(job.request, job.count, cells_of(layer, emulated, options.check));
    layers.push_back(json_of(job, layer, workload.nodes, options.check));
    wrong += layer.right() ? 0 : 1;
    predictions.add(layer.choice);
    clocks.add(layer.launches);
    if (auto bar = bar_of(job.request, layer, device->device().info(), tools.catalogue()))
      bars.push_back(std::move(*bar));
  }
  const std::optional<std::string> database = cache_path(
      options.database.empty() ? std::nullopt : std::optional(options.database), *context_options_.environment);
  std::error_code unknown;
  const bool is_kept = database && std::filesystem::exists(*database, unknown);
  const size_t barred = is_kept ? store_trials(bars, *database, device->device().info()) : 0;
  const int exit_code = wrong == 0 ? success : failed_check;
  if (options.output.json) {
    print_json({{"device", context.device_id()},
                {"time", emulated ? "modelled" : "measured"},
                {"modelled_by", clocks.json()},
                {"layers", layers},
                {"barred", barred},
                {"predicted_by", predictions.notes()},
                {"not_covered", not_covered_json(workload.not_covered)}});
    return exit_code;
  }
  fmt::print("{}\n{}{}{}", options.device.heading(device->device().info(), context.device_description(), clocks.text()),
             options.output.print(table.table()), predictions.print(), not_covered_text(workload.not_covered));
  if (options.check)
    fmt::print("\n{} layers agree with the reference, {} do not\n", workload.jobs.size() - wrong, wrong);
  if (barred > 0) fmt::print("{} variants are not used any more: {} holds the findings\n", barred, *database);
  return exit_code;
}

}  // namespace

void add_run(Command app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  const Command command = app.add_command("run", "run layers with the variants that the database has for them");
  options->input.add_to(command);
  options->device.add_to(command);
  add_database_option(command, options->database);
  command.add_option("--pack", options->packs, "packs to use beside the database");
  command.add_option("--bundle", options->bundles, "bundles of compiled variants to use");
  command.add_flag("--check", options->check, "compare every layer's output with the double-precision reference");
  command.add_option("--samples", options->samples, "timed runs on a real device; the median is shown (default 20)")
      .check(whole_number(1, 10'000));
  options->output.add_to(command);
  command.footer("Example: kiln run --check examples/models/resnet18.onnx");
  command.on_chosen([options, &exit_code] { exit_code = run_layers(*options); });
}

}  // namespace kiln::cli
