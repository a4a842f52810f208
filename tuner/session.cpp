#include "kiln/tuner/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine.h"
#include "kiln/generator/roofline.h"
#include "kiln/tuner/work_list.h"

namespace kiln::tuner {

Session::Session(const Catalogue& catalogue, Laboratory& laboratory, SessionOptions options, SessionCallbacks callbacks)
    : catalogue_(catalogue), laboratory_(laboratory), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

std::vector<JobResult> Session::run(const std::vector<Job>& jobs) {
  WorkList list(jobs);
  run(list);
  return list.take_results();
}

void Session::run(WorkList& list) {
  Apparatus apparatus = laboratory_.apparatus();
  if (options_.calibration) apparatus.figures.calibration = *options_.calibration;
  Engine engine(catalogue_, laboratory_, apparatus, options_, callbacks_, quarantine_, stop_, list);
  engine.run();
}

double worth_of(const Prospect& prospect) {
  const double to_gain = std::max(prospect.seconds - prospect.roofline_seconds, 0.0);
  const double chance = 1.0 / (static_cast<double>(prospect.trials) + 1);
  return static_cast<double>(prospect.count) * to_gain * chance / prospect.cost;
}

}  // namespace kiln::tuner
