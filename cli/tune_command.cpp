// kiln tune: find the best variant of every layer and keep it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "device_choice.h"
#include "fleet/status.h"
#include "input.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/base/printable.h"
#include "kiln/cache/record.h"
#include "kiln/prediction.h"
#include "kiln/runtime/settings.h"
#include "kiln/runtime/tuning.h"
#include "kiln/store/store_trouble.h"
#include "kiln/tuner/shard.h"
#include "machine_tuning.h"
#include "output.h"
#include "progress_display.h"
#include "report/page.h"
#include "stop_signals.h"
#include "tune_report.h"
#include "winner_launches.h"

namespace kiln::cli {
namespace {

// How long results wait at the end for whoever keeps the database locked. Hours of tuning outweigh some minutes.
constexpr std::chrono::minutes lock_limit(5);

struct TuneOptions {
  Input input;
  DeviceChoice device;
  std::string database, database_folder;
  std::string search = "model";
  size_t candidates = 16;
  uint64_t seed = 1;
  double budget = 0;                // seconds; 0: none
  std::optional<double> run_limit;  // seconds
  std::string shard;
  Output output;
  bool quiet = false, progress_json = false;
  std::string report;
  std::string status;  // a folder
};

// Each shard has a database of its own in --db-dir, so that no two machines write one file.
std::string database_in_folder(const TuneOptions& options, const std::optional<tuner::Shard>& shard) {
  std::error_code error;
  std::filesystem::create_directory(options.database_folder, error);  // not those above: the path may be mistyped
  if (error) {
    throw Error(ErrorCode::io_error,
                fmt::format("--db-dir {} cannot be made: {}", options.database_folder, error.message()),
                "give a folder that can be written, or one that can be made in a folder that is there");
  }
  if (!shard) return options.database_folder + "/all.db";
  return fmt::format("{}/shard-{}-of-{}.db", options.database_folder, shard->index, shard->count);
}

// Whether the user wants nothing kept: --db off, or KILN_CACHE=off. `named`: the database of the options; may be empty.
bool keeps_nothing(const std::string& named, const Environment& environment) {
  if (!named.empty()) return named == "off";
  return environment.cache == "off" && !environment.cache_not_trusted;
}

// One that was named must be usable: hours of tuning would be lost with the process. The default one need not be.
cache::Database open_database(const std::string& named, const Environment& environment) {
  if (keeps_nothing(named, environment)) return cache::Database::in_memory();
  const auto path = cache_path(named.empty() ? std::nullopt : std::optional(named), environment);
  if (!path) {
    const std::string_view why = environment.cache_not_trusted ? "" : "there is no cache folder: ";  // that was said
    fmt::print(stderr, "kiln: {}results are not kept (give --db FILE)\n", why);
    return cache::Database::in_memory();
  }
  OpenedDatabase opened = open_announced(*path, cache::OpenMode::read_write);
  if (opened.trouble && !named.empty()) {
    throw Error(ErrorCode::io_error,
                fmt::format("--db {} cannot be written: nothing was tuned: {}", *path, opened.trouble->cause),
                opened.trouble->hint);
  }
  if (opened.trouble) fmt::print(stderr, "kiln: {}\n", opened.trouble->text());
  return std::move(opened.database);
}

// `spent`: seconds that the command has taken so far, which count.
tuner::SessionOptions session_options(const TuneOptions& options, double spent) {
  tuner::SessionOptions session;
  session.search = {tuner::parse_search_kind(options.search), options.candidates, options.seed};
  if (options.budget > 0) session.budget_seconds = options.budget - spent;
  return session;
}

// Seconds of tuning that one variant takes, roughly: a compilation, and its runs. The figure is of no device in
// particular, so that the jobs of an array agree on who does what wherever they run.
double expected_seconds(const Request& request) {
  constexpr double compilation = 0.4, runs = 100;
  return compilation + runs * predicted_seconds(request, 0);  // where nothing serves it, the session says why
}

// `weighed`: what each takes matters, because they are shared out.
std::vector<tuner::Work> work_of(std::vector<tuner::Job> jobs, bool weighed) {
  std::vector<tuner::Work> work;
  for (tuner::Job& job : jobs) {
    const double seconds = weighed ? expected_seconds(job.request) : 0;
    work.push_back({std::move(job), seconds});
  }
  return work;
}

// Leaves what belongs to one shard, and gives back the requests of the others.
std::vector<std::string> keep_shard(std::vector<tuner::Work>& work, const tuner::Shard& shard) {
  std::vector<tuner::Load> loads;
  for (const tuner::Work& each : work) loads.push_back({each.job.request.key(), each.seconds});
  const std::vector<uint64_t> shards = tuner::shards_of(loads, shard.count);
  std::vector<tuner::Work> kept;
  std::vector<std::string> left_out;
  for (size_t i = 0; i < work.size(); ++i) {
    if (shards[i] == shard.index) {
      kept.push_back(std::move(work[i]));
    } else {
      left_out.push_back(loads[i].key);
    }
  }
  work = std::move(kept);
  return left_out;
}

bool was_stopped(const std::vector<CardResults>& cards) {
  for (const CardResults& card : cards) {
    for (const tuner::JobResult& result : card.results) {
      if (result.status == tuner::JobStatus::stopped) return true;
    }
  }
  return false;
}

// The command line that does the same again; what has its default is left out.
std::string command_line(const TuneOptions& options) {
  const TuneOptions standard;
  std::string text = "kiln tune";
  const auto add = [&](std::string_view flag, const std::string& value, const std::string& fallback) {
    if (value != fallback) text += fmt::format(" {} '{}'", flag, value);
  };
  text += fmt::format(" '{}'", options.input.text);
  add("--dtype", options.input.model.dtype, standard.input.model.dtype);
  add("--layout", options.input.model.layout, standard.input.model.layout);
  add("--batch", options.input.model.batch, standard.input.model.batch);
  for (const std::string& shape : options.input.model.shapes) text += fmt::format(" --shape '{}'", shape);
  if (options.input.model.no_fuse) text += " --no-fuse";
  add("--arithmetic", options.input.model.arithmetic, standard.input.model.arithmetic);
  for (const std::string& file : options.input.expressions) text += fmt::format(" --expression '{}'", file);
  if (options.input.no_code) text += " --no-code";
  add("--device", options.device.text, standard.device.text);
  text += fmt::format(" --search {} --candidates {} --seed {}", options.search, options.candidates, options.seed);
  if (options.budget > 0) text += fmt::format(" --budget {}", options.budget);
  if (options.run_limit) text += fmt::format(" --run-limit {}", *options.run_limit);
  add("--shard", options.shard, standard.shard);
  return text;
}

// Layers that one command tuned.
struct Tuned {
  std::vector<CardResults> cards;
  std::vector<LostDevice> lost;
  std::string database;  // in words
  std::vector<std::string> left_out;
};

// A report for each kind of card. Layers are numbered through.
std::vector<TuneReport> reports_of(const TuneOptions& options, const Tuned& tuned, const Workload& workload) {
  std::vector<TuneReport> reports;
  size_t first_layer = 1;
  for (const CardResults& card : tuned.cards) {
    reports.push_back({card.apparatus, card.results, workload.not_covered, tuned.database, card.reused,
                       options.input.text, command_line(options), cache::format_utc(cache::utc_now_ms()),
                       card.calibration, options.device.is_list() ? card.devices : std::vector<std::string>{},
                       first_layer});
    reports.back().nodes = workload.nodes;
    first_layer += card.results.size();
  }
  return reports;
}

// Adds the bounds of the winners, where the device tells them without running the kernels.
void add_launches(std::vector<TuneReport>& reports, const std::vector<CardResults>& cards, const Catalogue& catalogue) {
  for (size_t i = 0; i < cards.size(); ++i) {
    if (!cards[i].apparatus.times_without_running) continue;
    reports[i].launches = launches_of_winners({cards[i].devices.front()}, catalogue, cards[i].results);
  }
}

void print_as_json(const TuneOptions& options, const Tuned& tuned, const std::vector<TuneReport>& reports) {
  Json json;
  if (options.device.is_list()) {
    Json cards = Json::array();
    for (const TuneReport& report : reports) cards.push_back(json_of(report));
    json.set("cards", cards);
  } else {
    json = json_of(reports.front());
  }
  Json lost = Json::array();
  for (const LostDevice& device : tuned.lost) {
    lost.push_back({{"device", device.device}, {"error", device.error}});
  }
  json.set("lost", lost);
  if (!options.shard.empty()) json.set("shard", {{"part", options.shard}, {"left_out", tuned.left_out}});
  print_json(json);
}

void print_as_tables(const TuneOptions& options, const Tuned& tuned, const std::vector<TuneReport>& reports) {
  for (const TuneReport& report : reports) {
    if (&report != &reports.front()) fmt::print("\n");
    fmt::print("{}", options.device.heading(report.apparatus.device, report.apparatus.driver_description));
    if (!report.devices.empty()) {
      fmt::print("{} {}\n", report.devices.size() == 1 ? "device" : "devices", fmt::join(report.devices, ", "));
    }
    fmt::print("{}", print_table(report, options.output));
  }
  for (const LostDevice& device : tuned.lost) {
    fmt::print("device {} was lost, its results are kept: {}\n", device.device, printable(device.error));
  }
  if (!options.shard.empty()) {
    const size_t layers = reports.front().results.size();
    fmt::print("shard {}: {} of {} layers; the rest is left to the other shards\n", options.shard, layers,
               layers + tuned.left_out.size());
  }
}

// Opens the devices. They are not at fault if the budget ends before they are ready.
std::unique_ptr<MachineTuning> open_devices(const TuneOptions& options, const Environment& environment,
                                            const std::function<double()>& spent) {
  DeviceChoice::Limits limits{.run = options.run_limit};
  if (options.budget > 0) limits.open = options.budget;
  const std::optional<store::StoreOptions> kernels = kernel_store(std::nullopt, environment);
  const auto trouble = kernels ? store::trouble_with(*kernels) : std::nullopt;
  if (trouble) fmt::print(stderr, "kiln: {}\n", printable(*trouble));  // the workers are silent: each would say it
  try {
    return std::make_unique<MachineTuning>(options.device.each(), kernels, limits);
  } catch (const Error& error) {
    if (options.budget == 0 || spent() < options.budget) throw;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--budget {} was over before the device was ready", options.budget),
                "give more seconds: some for the start, and some for every layer");
  }
}

ProgressForm progress_form(const TuneOptions& options) {
  if (options.quiet) return ProgressForm::none;
  return options.progress_json ? ProgressForm::json : ProgressForm::people;
}

int tune(const TuneOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const StopSignals signals;
  std::optional<OutputFile> page;  // before hours of tuning: a path that cannot be written is known at once
  if (!options.report.empty()) page.emplace("the report", options.report);
  const std::optional<tuner::Shard> shard =
      options.shard.empty() ? std::nullopt : std::optional(tuner::Shard::parse(options.shard));
  const std::string named = options.database_folder.empty() ? options.database : database_in_folder(options, shard);
  Workload workload = read_workload(options.input);
  std::vector<tuner::Work> work = work_of(std::move(workload.jobs), shard || options.device.is_list());
  Tuned tuned;
  if (shard) tuned.left_out = keep_shard(work, *shard);
  const Environment environment = options.device.environment();
  const Catalogue catalogue = catalogue_of(environment);
  (void)session_options(options, 0);  // what is wrong with them is said before anything is begun

  cache::Database database = open_database(named, environment);
  const std::unique_ptr<MachineTuning> tuning = open_devices(options, environment, spent);
  {
    ProgressDisplay display(progress_form(options));
    tuning->prepare(catalogue, database, session_options(options, spent()), work, {options.input.text, options.shard},
                    display);
    const StopSignals::Session reached(*tuning);
    tuning->run();
    tuned.database = keep_results(database, lock_limit, [&] { return signals.code() != success; });
  }
  tuned.cards = tuning->take_results();
  tuned.lost = tuning->lost();
  std::vector<TuneReport> reports = reports_of(options, tuned, workload);
  if (options.output.json) {
    print_as_json(options, tuned, reports);
  } else {
    print_as_tables(options, tuned, reports);
  }
  if (page) {
    if (!was_stopped(tuned.cards)) add_launches(reports, tuned.cards, catalogue);
    page->write(print_page(reports));
    page->publish();
  }
  if (database.storage() != cache::Storage::file && !keeps_nothing(named, environment)) return not_kept;
  if (was_stopped(tuned.cards)) return signals.code();
  if (!tuned.lost.empty()) return no_device;
  const auto is_served = [](const CardResults& card) { return all_served(card.results); };
  return std::all_of(tuned.cards.begin(), tuned.cards.end(), is_served) ? success : failed_check;
}

// --status looks at what others do: whatever says how to tune is a mistake.
void require_status_alone(Command command) {
  const std::set<std::string> permitted = {"--status", "--json", "--wide"};
  for (const Option option : command.options()) {
    const std::vector<std::string> values = option.values();
    if (values.empty() || permitted.contains(option.name())) continue;
    const std::string given = option.is_argument() ? values.front() : option.name();
    throw Error(ErrorCode::invalid_argument, fmt::format("--status tunes nothing: {} has no meaning beside it", given),
                "kiln tune --status DIR takes --json or --wide");
  }
}

}  // namespace

void add_tune(Command app, int& exit_code) {
  auto options = std::make_shared<TuneOptions>();
  const Command command = app.add_command("tune", "check and time variants of every layer, and keep the results");
  options->input.add_to(command);
  options->device.add_several_to(command);
  add_database_option(command, options->database);
  command
      .add_option("--db-dir", options->database_folder,
                  "folder with a database for each shard, for network file systems")
      .type_name("DIR")
      .excludes(command.option("--db"));
  command.add_option("--search", options->search, "model, random, exhaustive or local")
      .check(one_of({"model", "random", "exhaustive", "local"}));
  command
      .add_option("--candidates", options->candidates,
                  "variants to time per layer (default 16), and as many points of user templates")
      .check(whole_number(1, 1'000'000));
  command.add_option("--seed", options->seed, "seed of the random choices")
      .check(whole_number(0, std::numeric_limits<int64_t>::max()));
  command.add_option("--budget", options->budget, "most seconds for the whole command").check(number_above_zero());
  add_run_limit_to(command, options->run_limit);
  command.add_option("--shard", options->shard, "i/N: only the i-th (from 0) of N parts that take about equally long");
  command.add_option("--report", options->report, "also write all results as a page: out.html");
  command.option("input").required(false);  // not with --status
  command
      .add_option("--status", options->status,
                  "only print the progress of the runs that write databases to a folder (--db-dir)")
      .type_name("DIR");
  options->output.add_to(command);
  const Option quiet = command.add_flag("--quiet", options->quiet, "no progress on stderr");
  command.add_flag("--progress-json", options->progress_json, "progress on stderr as JSON, an object a line")
      .excludes(quiet);
  command.footer(
      "Every finished variant is stored at once. Stop the command at any time: the same command continues.\n"
      "Example: kiln tune examples/models/resnet18.onnx --dtype f16 --layout nhwc --batch 32 --budget 600");
  command.on_chosen([options, command, &exit_code] {
    if (options->status.empty() && options->input.text.empty()) throw UsageError("input is required");
    if (!options->status.empty()) require_status_alone(command);
    exit_code = options->status.empty() ? tune(*options) : show_status(options->status, options->output);
  });
}

}  // namespace kiln::cli
