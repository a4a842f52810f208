// kiln run: run layers with what the cache has for them, as an application would.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
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
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/runtime/settings.h"
#include "kiln/tuner/laboratory.h"
#include "launches.h"
#include "layer_run.h"
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
  LayerRun run;
  Output output;
};

ContextOptions context_options(const RunOptions& options) {
  ContextOptions context = options.device.context_options();
  if (!options.database.empty()) context.cache = options.database;
  context.packs = options.packs;
  context.bundles = options.bundles;
  return context;
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
  if (options.run.check) headings.emplace_back("check");
  LayerTable table(workload.nodes, headings);
  size_t wrong = 0;
  PredictionNotes predictions(device->device().info().name);
  LaunchClocks clocks(device->device().info().name);
  std::vector<tuner::Trial> bars;
  Json layers = Json::array();
  for (const tuner::Job& job : workload.jobs) {
    const LayerResult layer = run_layer(context, device, job.request, options.run, tools);
    table.add(job.request, job.count, cells_of(layer, emulated, options.run.check));
    layers.push_back(json_of(job, layer, workload.nodes, options.run.check));
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
  if (options.run.check)
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
  command.add_flag("--check", options->run.check, "compare every layer's output with the double-precision reference");
  command.add_option("--samples", options->run.samples, "timed runs on a real device; the median is shown (default 20)")
      .check(whole_number(1, 10'000));
  options->output.add_to(command);
  command.footer("Example: kiln run --check examples/models/resnet18.onnx");
  command.on_chosen([options, &exit_code] { exit_code = run_layers(*options); });
}

}  // namespace kiln::cli
