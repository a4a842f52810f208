// kiln explain: why a layer runs as it does.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "commands.h"
#include "device_choice.h"
#include "explain_trials.h"
#include "input.h"
#include "kiln/cache/database.h"
#include "kiln/context.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/settings.h"
#include "table.h"
#include "words.h"

namespace kiln::cli {
namespace {

struct ExplainOptions {
  Input input;
  DeviceChoice device;
  std::string database;
  std::vector<std::string> packs;
  bool brief = false;
};

void print_candidates(const std::vector<ExplainedCandidate>& candidates, const char* heading, double roofline) {
  if (candidates.empty()) return;
  Table table({heading, "parameters", ">time", ">of roofline", "source"});
  for (const ExplainedCandidate& candidate : candidates) {
    table.add({candidate.algorithm, candidate.config, time_text(candidate.seconds),
               percent_text(roofline / candidate.seconds), candidate.source});
  }
  fmt::print("\n{}", table.print());
}

// What the database holds of the request on this device, losers and failures too.
void print_trials(const cache::Database& database, const std::string& request, const std::string& device,
                  const cache::IsCurrent& is_current) {
  const std::vector<ExplainedTrial> trials = explain_trials(database.records(request, device), is_current);
  if (trials.empty()) return;
  Table table({"tried on this device", "parameters", ">time", "outcome"});
  for (const ExplainedTrial& trial : trials) {
    const cache::Record& record = trial.record;
    table.add({record.algorithm, record.config, record.seconds > 0 ? time_text(record.seconds) : "-", trial.why});
  }
  fmt::print("\n{}", table.print());
}

// The database that a Context would read, if it is there.
std::optional<cache::Database> open_database(const ExplainOptions& options, const Environment& environment) {
  const auto path = cache_path(options.database.empty() ? std::nullopt : std::optional(options.database), environment);
  std::error_code unreadable;
  if (!path || options.brief || !std::filesystem::exists(*path, unreadable)) return std::nullopt;
  return cache::Database::open(*path, {.mode = cache::OpenMode::read_only});  // the Context announces its troubles
}

void print_explanation(const Explanation& why) {
  fmt::print("{}\n", why.request.key());
  if (lacks_user_text(why.request)) fmt::print("{}\n", missing_user_text(why.request).what());
  fmt::print("roofline: {} ({})\n", time_text(why.roofline_seconds), why.roofline_of);
  for (const std::string& permission : why.unused_permissions) {
    fmt::print("{} changes nothing: no kernel makes use of it for this request\n", permission);
  }
  if (why.chosen)
    fmt::print("chosen: {} {} ({})\n", why.chosen->algorithm, why.chosen->config, why.chosen->source);
  else
    fmt::print("chosen: nothing serves this request\n");
  print_candidates(why.stored, "stored, in order of precedence", why.roofline_seconds);
  print_candidates(why.estimated, "best estimates", why.roofline_seconds);
  if (!why.withheld.empty()) {
    Table table({"not used", "parameters", "because"});
    for (const ExplainedWithheld& one : why.withheld) table.add({one.algorithm, one.config, one.reason});
    fmt::print("\n{}", table.print());
  }
  if (why.refused.empty()) return;
  Table table({"does not apply", "because"});
  for (const ExplainedRefusal& refusal : why.refused) table.add({refusal.algorithm, refusal.reason});
  fmt::print("\n{}", table.print());
}

int explain(const ExplainOptions& options) {
  const Workload workload = read_workload(options.input);
  ContextOptions settings;
  settings.environment = options.device.environment();
  settings.device = options.device.ordinal();
  if (!options.database.empty()) settings.cache = options.database;
  settings.packs = options.packs;
  const Context context(settings);
  const std::optional<cache::Database> database = open_database(options, *settings.environment);
  const Catalogue catalogue = catalogue_of(*settings.environment);
  fmt::print("{}\n", context.device_description());
  bool served = true;
  for (const tuner::Job& job : workload.jobs) {
    const Explanation why = context.explain(job.request);
    if (&job == &workload.jobs.front()) {
      fmt::print("predictions: {}\n", predictions_text(why.calibrated, why.calibration));
    }
    fmt::print("\n");
    print_explanation(why);
    if (database) print_trials(*database, job.request.key(), context.device_id(), is_current(catalogue));
    served = served && why.chosen.has_value();
  }
  return served ? success : failed_check;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "say which variant a layer gets, what else there is, and why not");
  options->input.add_to(*command);
  options->device.add_to(*command);
  command->add_option("--db", options->database, "tuning database (default: KILN_CACHE, else the user's cache folder)");
  command->add_option("--pack", options->packs, "packs to use beside the database");
  command->add_flag("--brief", options->brief, "leave out the stored candidates that cannot win");
  command->footer("Example: kiln explain 'softmax_forward x=f32:64x1000'");
  command->callback([options, &exit_code] { exit_code = explain(*options); });
}

}  // namespace kiln::cli
