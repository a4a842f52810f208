#include "kiln/tuner/laboratory.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/error.h"

namespace kiln::tuner {

bool deserves_retry(const std::optional<Failure>& failure) {
  return failure && (is_suspect(failure->outcome) || failure->outcome == Outcome::out_of_memory);
}

Trial begin_trial(const Apparatus& apparatus, const Catalogue& catalogue, const Request& request, Choice choice) {
  Trial trial;
  trial.request = request.key();
  trial.choice = std::move(choice);
  trial.device = apparatus.device.id();
  trial.modelled = apparatus.deterministic_time;
  trial.driver_version = apparatus.driver_version;
  trial.nvrtc_version = apparatus.nvrtc_version;
  trial.algorithm_digest = catalogue.digest(trial.choice.algorithm).value_or("");
  return trial;
}

void add_program(Trial& trial, const Program& program) {
  trial.source_digest = program.digest();
  trial.workspace_bytes = program.workspace_bytes;
  trial.deterministic = program.deterministic;
  for_each_launch(program.steps, [&](const Launch& launch) {
    trial.dynamic_shared = std::max(trial.dynamic_shared, static_cast<int>(launch.dynamic_shared_bytes));
  });
}

Programs programs_of(Variants& variants, const std::optional<Request>& stand_in, const Choice& choice) {
  Programs programs{variants.program(choice)};
  if (!stand_in) return programs;
  try {
    const Catalogue& catalogue = variants.catalogue();
    const BoundAlgorithm smaller = catalogue.find(choice.algorithm)->on(*stand_in, variants.target());
    // The rules that prune were kept for the request itself.
    programs.stand_in = smaller.program(catalogue.library(), choice.config, Rules::necessary);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("its result cannot be checked by that of {}: {}", stand_in->key(), error.message()),
                error.hint());
  }
  return programs;
}

}  // namespace kiln::tuner
