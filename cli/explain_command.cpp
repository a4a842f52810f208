// kiln explain: why a layer runs as it does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "all_sizes.h"
#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "device_choice.h"
#include "explain_trials.h"
#include "input.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/base/printable.h"
#include "kiln/cache/database.h"
#include "kiln/cache/record.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/target.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/settings.h"
#include "kiln/tuner/device_timer.h"
#include "launches.h"
#include "modelled_times.h"
#include "output.h"
#include "short_forms.h"
#include "table.h"
#include "why_miss.h"

namespace kiln::cli {
namespace {

struct ExplainOptions {
  Input input;
  DeviceChoice device;
  std::string database;
  std::vector<std::string> packs;
  bool brief = false;
  bool launches = false;
  bool why_miss = false;
  std::string timeline;
  Output output;
};

// All that is said of one layer.
struct ExplainedLayer {
  Explanation why;
  std::vector<std::string> nodes;     // of a model, which it serves
  std::string tie;                    // what decided among equally fast ones, if that did
  std::vector<ExplainedTrial> tried;  // what the database holds of it on this device, losers and failures too
  std::optional<Json> launches{};     // those of what is chosen, if they were asked for
  std::vector<LaunchTrace> traces{};
  std::string not_timed{};  // why there are none
  std::optional<Miss> miss{};
};

void print_candidates(const std::vector<ExplainedCandidate>& candidates, const char* heading, double roofline,
                      const Output& output) {
  if (candidates.empty()) return;
  Table table({heading, "parameters", ">time", ">of roofline", "source"});
  for (const ExplainedCandidate& candidate : candidates) {
    table.add({candidate.algorithm, candidate.config, time_text(candidate.seconds),
               percent_text(roofline / candidate.seconds), candidate.source});
  }
  fmt::print("\n{}", output.print(table));
}

void print_reasons(const std::vector<ExplainedWithheld>& variants, const char* heading, const Output& output) {
  if (variants.empty()) return;
  Table table({heading, "parameters", "because"});
  for (const ExplainedWithheld& one : variants) table.add({one.algorithm, one.config, one.reason});
  fmt::print("\n{}", output.print(table));
}

void print_trials(const std::vector<ExplainedTrial>& trials, const Output& output) {
  if (trials.empty()) return;
  Table table({"tried on this device", "parameters", ">time", "outcome"});
  for (const ExplainedTrial& trial : trials) {
    const cache::Record& record = trial.record;
    table.add({record.algorithm, record.config, record.seconds > 0 ? time_text(record.seconds) : "-", trial.why});
  }
  fmt::print("\n{}", output.print(table));
}

// The database that a Context would read.
std::optional<cache::Database> open_database(const ExplainOptions& options, const Environment& environment) {
  const auto path = cache_path(options.database.empty() ? std::nullopt : std::optional(options.database), environment);
  if (!path) return std::nullopt;
  return cache::Database::open(*path, {.mode = cache::OpenMode::read_only});  // the Context announces its troubles
}

void print(const ExplainedLayer& layer, const Output& output) {
  const Explanation& why = layer.why;
  fmt::print("\n{}\n", why.request.key());
  if (!layer.nodes.empty()) fmt::print("nodes: {}\n", printable_line(fmt::format("{}", fmt::join(layer.nodes, ", "))));
  if (lacks_user_text(why.request)) fmt::print("{}\n", missing_user_text(why.request).what());
  fmt::print("roofline: {} ({})\n", time_text(why.roofline_seconds), why.roofline_of);
  for (const std::string& permission : why.unused_permissions) {
    fmt::print("{} changes nothing: no kernel makes use of it for this request\n", permission);
  }
  if (why.order_of_sums) {
    const ExplainedOrder& sums = *why.order_of_sums;
    fmt::print("batch_invariant: {}; {:.2f}x the time without ({})\n", sums.order, sums.slowdown, sums.basis);
  }
  if (why.chosen)
    fmt::print("chosen: {} {} ({})\n", why.chosen->algorithm, why.chosen->config, why.chosen->source);
  else
    fmt::print("chosen: nothing serves this request\n");
  if (!layer.tie.empty()) fmt::print("        {}\n", layer.tie);
  if (layer.miss) fmt::print("{}", text_of(*layer.miss, output));
  if (!why.no_compiler.empty()) fmt::print("only variants of a bundle can be used here: {}\n", why.no_compiler);
  print_candidates(why.stored, "stored, in order of precedence", why.roofline_seconds, output);
  print_candidates(why.estimated, "best estimates", why.roofline_seconds, output);
  print_reasons(why.withheld, "not used", output);
  print_reasons(why.not_believed, "not believed", output);
  if (!why.refused.empty()) {
    Table table({"does not apply", "because"});
    for (const ExplainedRefusal& refusal : why.refused) table.add({refusal.algorithm, refusal.reason});
    fmt::print("\n{}", output.print(table));
  }
  print_trials(layer.tried, output);
  if (layer.launches && layer.launches->size() > 0) {
    fmt::print("\nlaunches of the chosen variant\n{}", launches_text(*layer.launches));
  }
  if (!layer.not_timed.empty()) fmt::print("\nlaunches are not timed: {}\n", layer.not_timed);
}

Json json_of(const ExplainedTrial& trial) {
  const cache::Record& record = trial.record;
  return {{"algorithm", record.algorithm},
          {"config", record.config},
          {"outcome", record.outcome},
          {"seconds", record.seconds > 0 ? Json(record.seconds) : Json(nullptr)},
          {"workspace_bytes", record.workspace_bytes},
          {"deterministic", record.deterministic},
          {"why", trial.why}};
}

Json json_of(const ExplainedLayer& layer) {
  Json json = Json::parse(to_json(layer.why));
  for (const char* of_all_layers : {"device", "calibrated", "calibration"}) json.erase(of_all_layers);
  json.set("nodes", layer.nodes);
  json.set("tie", layer.tie);
  Json tried = Json::array();
  for (const ExplainedTrial& trial : layer.tried) tried.push_back(json_of(trial));
  json.set("tried", tried);
  if (layer.launches) json.set("launches", *layer.launches);
  if (!layer.not_timed.empty()) json.set("not_timed", layer.not_timed);
  if (layer.miss) json.set("why_miss", json_of(*layer.miss));
  return json;
}

ExplainedLayer explain_layer(const Context& context, const Request& request,
                             const std::optional<cache::Database>& database, const cache::IsCurrent& is_current,
                             bool brief) {
  ExplainedLayer layer{context.explain(request), {}, {}, {}};
  if (!database) return layer;
  std::vector<cache::Record> records = database->records(request.key(), context.device_id());
  const cache::Record* const winner = cache::winner_among(records, is_current);
  const std::optional<ExplainedCandidate>& chosen = layer.why.chosen;
  if (winner != nullptr && chosen && chosen->algorithm == winner->algorithm && chosen->config == winner->config) {
    layer.tie = tie_text(records, is_current);
  }
  if (!brief) layer.tried = explain_trials(std::move(records), is_current);
  return layer;
}

// The nearest stored request, and what differs, unless a stored choice serves the layer.
Miss miss_of(const ExplainedLayer& layer, const Context& context, const std::vector<StoredRequest>& stored) {
  Miss miss = why_missed(layer.why.request.key(), context.device_id(), stored);
  const std::optional<ExplainedCandidate>& chosen = layer.why.chosen;
  if (chosen && !layer.why.stored.empty()) {
    miss.why = fmt::format("nothing is missed: the choice is {}", chosen->source);
    miss.differences.clear();
  } else if (miss.nearest && miss.differences.empty()) {
    miss.why += ", and none can be used: `kiln explain` lists them with the reasons";
  }
  return miss;
}

// Runs what is chosen on an emulated device, whose clock tells the time of each launch.
class LaunchTimer {
 public:
  /// Throws Error(invalid_argument) for a device that is none.
  explicit LaunchTimer(std::shared_ptr<const device::ContextHandle> device)
      : device_(std::move(device)), timer_(device_) {
    require_modelled_times(device_->device().info());
  }

  /// A layer that cannot be run does not end the others.
  void add_to(ExplainedLayer& layer, Context& context, bool traced) {
    if (!layer.why.chosen) return;
    const Request& request = layer.why.request;
    // Large layers take the emulator a while.
    std::fflush(stdout);
    fmt::print(stderr, "kiln: timing {} on the emulated device\n", summary(request));
    layer.launches = Json::array();
    try {
      const Plan plan = context.plan(request);
      layer.launches = with_operands(device_, request, [&](const checking::DeviceOperands& operands) {
        return launches_of(timer_, operands, checkable(plan), traced ? &layer.traces : nullptr);
      });
    } catch (const Error& error) {
      layer.not_timed = error.what();
    } catch (const std::bad_alloc&) {
      layer.not_timed = "out of memory on this machine";
    }
  }

 private:
  std::shared_ptr<const device::ContextHandle> device_;
  tuner::DeviceTimer timer_;
};

void require_one_layer(const Workload& workload) {
  if (workload.jobs.size() == 1) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--timeline writes one layer's kernels, and there are {} layers", workload.jobs.size()),
              "give one request in quotes; `kiln explain` without --timeline prints those of a model");
}

std::string why_no_timeline(const ExplainedLayer& layer) {
  if (!layer.why.chosen) return "nothing serves this request";
  if (!layer.not_timed.empty()) return layer.not_timed;
  if (layer.launches) {
    const std::vector<std::string> reasons = not_by_machine_code(*layer.launches);
    if (!reasons.empty()) return reasons.front();
  }
  return "machine code told no time, for which KILN_EMULATOR_CLOCK is not ptx and nvdisasm is installed "
         "(pip install nvidia-cuda-nvdisasm)";
}

// False if there is nothing to write: then the file stays as it was.
bool write_timeline(const ExplainedLayer& layer, OutputFile& file, const std::string& path) {
  if (layer.traces.empty()) {
    fmt::print(stderr, "kiln: no timeline: {}\n", why_no_timeline(layer));
    return false;
  }
  file.write(trace_file(layer.traces, layer.why.request.key()));
  file.publish();
  for (const LaunchTrace& trace : layer.traces) {
    fmt::print(stderr, "kiln: {}: {}{} instructions of {}\n", path, trace.is_whole ? "all " : "the first ",
               trace.instructions, trace.kernel);
  }
  return true;
}

// For --why-miss: what the database and all packs have.
std::vector<StoredRequest> all_stored(const ExplainOptions& options, const Environment& environment,
                                      const std::optional<cache::Database>& database) {
  if (!options.why_miss) return {};
  std::vector<std::string> packs = pack_paths(options.packs, environment);
  const std::vector<std::string> installed = system_packs(environment);
  packs.insert(packs.end(), installed.begin(), installed.end());
  return stored_requests(database, packs);
}

void require_no_size_wanted(const ExplainOptions& options) {
  const bool database = !options.database.empty() && options.database != "off";
  const char* const wanted = options.launches            ? "--launches"
                             : database                  ? "--db"
                             : !options.packs.empty()    ? "--pack"
                             : options.brief             ? "--brief"
                             : !options.timeline.empty() ? "--timeline"
                             : options.why_miss          ? "--why-miss"
                                                         : nullptr;
  if (wanted == nullptr) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is of a size, and the request leaves extents open", wanted),
              "give the extents as numbers, or name them, as in x=f32:?nx?c, and give --sweep n=1,8 --sweep c=64");
}

// Prints the answer for requests with open extents: the open kernels that FirstCall::at_once serves them by.
int explain_all_sizes(const ExplainOptions& options, const std::vector<std::string>& lines) {
  require_no_size_wanted(options);
  const Environment environment = options.device.environment();
  const auto driver = device::Driver::open({environment.driver});
  const device::DeviceInfo device = device::Device(driver, options.device.ordinal()).info();
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const Target target = execution::target_for(device.cc_major, device.cc_minor, *nvrtc);
  const Catalogue catalogue = catalogue_of(environment);
  const std::vector<OpenLineKernels> all = all_sizes_of(lines, catalogue, target, execution::figures_of(device));
  if (options.output.json) {
    Json requests = Json::array();
    for (const OpenLineKernels& one : all) requests.push_back(cli::json_of(one));
    print_json({{"device", device.id()}, {"requests", requests}});
    return success;
  }
  fmt::print("{}", options.device.heading(device, driver->description()));
  for (const OpenLineKernels& one : all) fmt::print("{}", text_of(one, options.output));
  return success;
}

int explain(const ExplainOptions& options) {
  const auto [workload, open_lines] = read_workload_or_lines(options.input);
  if (!open_lines.empty()) return explain_all_sizes(options, open_lines);
  std::optional<OutputFile> timeline;
  if (!options.timeline.empty()) {
    require_one_layer(workload);
    timeline.emplace("the timeline", options.timeline);
  }
  require_packs(options.packs);
  require_database(options.database, keys_of(workload));
  ContextOptions settings = options.device.context_options();
  if (!options.database.empty()) settings.cache = options.database;
  settings.packs = options.packs;
  Context context(settings);
  const device::Device on(device::Driver::open({settings.environment->driver}), settings.device);
  const device::DeviceInfo& device = on.info();
  std::optional<LaunchTimer> timer;
  if (options.launches || timeline) timer.emplace(device::ContextHandle::acquire(on));
  const std::optional<cache::Database> database = open_database(options, *settings.environment);
  const Catalogue catalogue = catalogue_of(*settings.environment);
  const cache::IsCurrent current = is_current(catalogue);
  if (!options.output.json) fmt::print("{}", options.device.heading(device, context.device_description()));
  const std::vector<StoredRequest> stored = all_stored(options, *settings.environment, database);
  bool served = true;
  Json layers = Json::array();
  PredictionNotes predictions(device.name);
  Explanation last;  // the predictions of all are drawn from the same figures
  for (const tuner::Job& job : workload.jobs) {
    ExplainedLayer layer = explain_layer(context, job.request, database, current, options.brief);
    layer.nodes = workload.nodes.of(job.request);
    if (options.why_miss) layer.miss = miss_of(layer, context, stored);
    if (timer) timer->add_to(layer, context, timeline.has_value());
    if (timeline && !write_timeline(layer, *timeline, options.timeline)) served = false;
    if (!options.output.json && &job == &workload.jobs.front()) {
      fmt::print("predictions: {}\n", predictions_text(layer.why.calibrated, layer.why.calibration));
    }
    served = served && layer.why.chosen && layer.not_timed.empty();
    for (const ExplainedCandidate& one : layer.why.stored) predictions.add(one.source);
    last = layer.why;
    if (options.output.json)
      layers.push_back(json_of(layer));
    else
      print(layer, options.output);
  }
  if (options.output.json) {
    print_json({{"device", device.id()},
                {"time", device.emulated ? "modelled" : "measured"},
                {"modelled_by", modelled_json(device.name)},
                {"calibrated", last.calibrated},
                {"calibration", last.calibration},
                {"layers", layers},
                {"predicted_by", predictions.notes()},
                {"not_covered", not_covered_json(workload.not_covered)}});
  } else {
    fmt::print("{}{}", predictions.print(), not_covered_text(workload.not_covered));
  }
  return served ? success : failed_check;
}

}  // namespace

void add_explain(Command app, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  const Command command =
      app.add_command("explain", "print the variant that a layer gets, the others, and why they are not used");
  options->input.add_to(command);
  options->device.add_to(command);
  add_database_option(command, options->database);
  command.add_option("--pack", options->packs, "packs to use beside the database");
  command.add_flag("--brief", options->brief, "leave out the stored candidates that cannot win");
  command.add_flag("--why-miss", options->why_miss, "name the nearest stored request, and the parts of it that differ");
  command.add_flag("--launches", options->launches,
                   "time the chosen variant on the emulated device, and print what bounds each of its kernels");
  command
      .add_option("--timeline", options->timeline,
                  "the same, and write a timeline of one SM, cycle by cycle, for ui.perfetto.dev")
      .type_name("FILE");
  options->output.add_to(command);
  command.footer(
      "Examples: kiln explain 'softmax_forward x=f32:64x1000'\n"
      "          kiln explain 'softmax_forward x=f32:?x?'    # open kernels, and the sizes that take them");
  command.on_chosen([options, &exit_code] { exit_code = explain(*options); });
}

}  // namespace kiln::cli
