// kiln explain: why a layer runs as it does.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "device_choice.h"
#include "input.h"
#include "kiln/context.h"
#include "table.h"
#include "words.h"

namespace kiln::cli {
namespace {

struct ExplainOptions {
  Input input;
  DeviceChoice device;
  std::string database;
  std::vector<std::string> packs;
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

void print_explanation(const Explanation& why) {
  fmt::print("{}\n", why.request.key());
  fmt::print("roofline: {}\n", time_text(why.roofline_seconds));
  if (why.chosen)
    fmt::print("chosen: {} {} ({})\n", why.chosen->algorithm, why.chosen->config, why.chosen->source);
  else
    fmt::print("chosen: nothing serves this request\n");
  print_candidates(why.stored, "stored, in order of precedence", why.roofline_seconds);
  print_candidates(why.estimated, "best estimates", why.roofline_seconds);
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
  fmt::print("{}\n", context.device_description());
  bool served = true;
  for (const tuner::Job& job : workload.jobs) {
    const Explanation why = context.explain(job.request);
    fmt::print("\n");
    print_explanation(why);
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
  command->footer("Example: kiln explain 'softmax_forward x=f32:64x1000'");
  command->callback([options, &exit_code] { exit_code = explain(*options); });
}

}  // namespace kiln::cli
