// kiln tune: find the best variant of every layer and keep it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "commands.h"
#include "device_choice.h"
#include "input.h"
#include "kiln/base/error.h"
#include "kiln/cache/record.h"
#include "kiln/runtime/settings.h"
#include "kiln/runtime/tuning.h"
#include "progress_display.h"
#include "report/page.h"
#include "report/report_file.h"
#include "tune_report.h"

namespace kiln::cli {
namespace {

struct TuneOptions {
  Input input;
  DeviceChoice device;
  std::string database;
  std::string search = "model";
  size_t candidates = 16;
  uint64_t seed = 1;
  double budget = 0;  // seconds; 0: none
  std::string shard;
  bool json = false;
  bool quiet = false;
  std::string report;
};

// Set while a session runs, so that Ctrl-C can end it between two trials. A signal handler can reach nothing else.
Tuning* session_at_work = nullptr;

extern "C" void stop_session(int) {
  if (session_at_work != nullptr) session_at_work->stop();
}

// Catches Ctrl-C for a scope. The second one ends the program as usual.
class StopOnInterrupt {
 public:
  explicit StopOnInterrupt(Tuning& tuning) {
    session_at_work = &tuning;
    struct sigaction action {};
    action.sa_handler = stop_session;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &previous_);
  }
  ~StopOnInterrupt() {
    sigaction(SIGINT, &previous_, nullptr);
    session_at_work = nullptr;
  }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  struct sigaction previous_ {};
};

// One that was named must be usable: hours of tuning would be lost with the process. The default one need not be.
cache::Database open_database(const TuneOptions& options, const Environment& environment) {
  const bool named = !options.database.empty();
  const auto path = cache_path(named ? std::optional(options.database) : std::nullopt, environment);
  if (!path) {
    fmt::print(stderr, "kiln: there is no cache folder: results are not kept (give --db FILE)\n");
    return cache::Database::in_memory();
  }
  cache::Database database = cache::Database::open(
      *path, {}, [](const cache::Announcement& trouble) { fmt::print(stderr, "kiln: {}\n", trouble.text()); });
  if (named && database.storage() != cache::Storage::file) {
    throw Error(ErrorCode::io_error, fmt::format("--db {} cannot be written: nothing was tuned", *path),
                "name a file in a folder that you can write, or leave --db out to tune without keeping anything");
  }
  return database;
}

std::string where(const cache::Database& database) {
  return database.storage() == cache::Storage::file ? database.path() : "memory only, lost at the end";
}

tuner::SessionOptions session_options(const TuneOptions& options) {
  tuner::SessionOptions session;
  session.search = {tuner::parse_search_kind(options.search), options.candidates, options.seed};
  if (!std::isfinite(options.budget)) throw Error(ErrorCode::invalid_argument, "--budget is not a number of seconds");
  if (options.budget > 0) session.budget_seconds = options.budget;
  return session;
}

void keep_shard(std::vector<tuner::Job>& jobs, const std::string& text) {
  if (text.empty()) return;
  const tuner::Shard shard = tuner::Shard::parse(text);
  std::erase_if(jobs, [&](const tuner::Job& job) { return !shard.contains(job.request.key()); });
}

bool was_stopped(const std::vector<tuner::JobResult>& results) {
  for (const tuner::JobResult& result : results) {
    if (result.status == tuner::JobStatus::stopped) return true;
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
  add("--dtype", options.input.dtype, standard.input.dtype);
  add("--layout", options.input.layout, standard.input.layout);
  add("--batch", options.input.batch, standard.input.batch);
  if (options.input.no_fuse) text += " --no-fuse";
  for (const std::string& file : options.input.expressions) text += fmt::format(" --expression '{}'", file);
  add("--device", options.device.text, standard.device.text);
  text += fmt::format(" --search {} --candidates {} --seed {}", options.search, options.candidates, options.seed);
  if (options.budget > 0) text += fmt::format(" --budget {}", options.budget);
  add("--shard", options.shard, standard.shard);
  return text;
}

int tune(const TuneOptions& options) {
  std::optional<ReportFile> page;
  if (!options.report.empty()) page.emplace(options.report);
  Workload workload = read_workload(options.input);
  keep_shard(workload.jobs, options.shard);
  const Environment environment = options.device.environment();
  const Catalogue catalogue = catalogue_of(environment);
  const tuner::SessionOptions session = session_options(options);

  cache::Database database = open_database(options, environment);
  const std::unique_ptr<tuner::Laboratory> laboratory =
      options.device.laboratory({}, kernel_store(std::nullopt, environment));

  std::vector<tuner::JobResult> results;
  size_t reused = 0;
  std::optional<Calibration> calibration;
  {
    ProgressDisplay display(options.quiet);
    Tuning tuning(catalogue, *laboratory, database, session,
                  [&](const tuner::Progress& progress) { display.show(progress); });
    const StopOnInterrupt guard(tuning);
    results = tuning.run(workload.jobs);
    reused = tuning.reused();
    calibration = tuning.calibration();
  }
  const TuneReport report{laboratory->apparatus(),
                          results,
                          workload.not_covered,
                          where(database),
                          reused,
                          options.input.text,
                          command_line(options),
                          cache::format_utc(cache::utc_now_ms()),
                          calibration};
  fmt::print("{}", options.json ? print_json(report) : print_table(report));
  if (page) page->publish(print_page(report));
  if (was_stopped(results)) return interrupted;
  return all_served(results) ? success : failed_check;
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "check and time variants of every layer, and keep the results");
  options->input.add_to(*command);
  options->device.add_to(*command);
  command->add_option("--db", options->database, "tuning database (default: KILN_CACHE, else the user's cache folder)");
  command->add_option("--search", options->search, "model, random, exhaustive or local")
      ->check(CLI::IsMember({"model", "random", "exhaustive", "local"}));
  command->add_option("--candidates", options->candidates, "most variants to try per layer (default 16)")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--seed", options->seed, "of the random choices")->check(CLI::NonNegativeNumber);
  command->add_option("--budget", options->budget, "most seconds for all layers together")->check(CLI::PositiveNumber);
  command->add_option("--shard", options->shard, "i/N: only the i-th (from 0) of N equal parts of the layers");
  command->add_option("--report", options->report, "also write everything that was found as a page: out.html");
  command->add_flag("--json", options->json, "print everything that was found as JSON");
  command->add_flag("--quiet", options->quiet, "no progress on stderr");
  command->footer(
      "Every finished variant is stored at once: stop it at any time, and the same command goes on.\n"
      "Example: kiln tune examples/models/resnet18.onnx --dtype f16 --layout nhwc --batch 32 --budget 600");
  command->callback([options, &exit_code] { exit_code = tune(*options); });
}

}  // namespace kiln::cli
