// How long NVRTC takes per candidate: the candidates that `kiln tune` would try for every call of a model.
//
// Method: candidates of the default search, in the worker processes that tuning uses, one compile lane a core, nothing
// stored before. Each compile's wall-clock time inside its worker is a sample; printed are the median, the ninth
// decile, and how busy the lanes were (sum of the samples over lanes times elapsed time).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/models/lower.h"
#include "kiln/templates/catalogue.h"
#include "kiln/tuner/search.h"
#include "kiln/tuner/worker.h"

namespace {

// Programs of all candidates of a model, each source once.
std::vector<kiln::Program> programs_of(const std::string& model, const kiln::Catalogue& catalogue,
                                       const kiln::tuner::Apparatus& apparatus) {
  std::vector<kiln::Program> programs;
  std::set<std::string> seen;
  for (const kiln::graph::Step& step : kiln::models::lower(model, {}).schedule.steps) {
    const auto candidates = catalogue.candidates(step.request, apparatus.target, apparatus.figures);
    const auto search = kiln::tuner::make_search({}, candidates.ranked, candidates.ranked.front().choice);
    while (const auto choice = search->next()) {
      kiln::Program program = catalogue.program(step.request, apparatus.target, *choice);
      if (seen.insert(program.digest()).second) programs.push_back(std::move(program));
      search->observe({});
    }
  }
  return programs;
}

int run(const std::string& model) {
  const kiln::Environment environment = kiln::Environment::read();
  kiln::tuner::WorkerPoolOptions options;
  options.worker = kiln::tuner::find_worker(environment.worker);
  options.driver = environment.driver;
  options.nvrtc = environment.nvrtc;
  const auto laboratory = kiln::tuner::make_worker_pool(options);
  const kiln::Catalogue catalogue = kiln::make_catalogue(kiln::embedded_sources());
  const std::vector<kiln::Program> programs = programs_of(model, catalogue, laboratory->apparatus());

  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < programs.size(); ++i) laboratory->submit(i + 1, {programs[i]});
  std::vector<double> seconds;
  size_t failed = 0, spilled = 0;
  while (seconds.size() + failed < programs.size()) {
    const auto report = laboratory->collect(1.0);
    if (!report) continue;
    if (report->failure) {
      ++failed;
      continue;
    }
    seconds.push_back(report->seconds);
    spilled += report->resources.spill_stores > 0;
  }
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::sort(seconds.begin(), seconds.end());
  double busy = 0;
  for (double second : seconds) busy += second;
  fmt::print("NVRTC {} for {}: {} candidates of {}, {} failed, {} with spills\n", laboratory->apparatus().nvrtc_version,
             laboratory->apparatus().target.arch.name(), programs.size(), model, failed, spilled);
  fmt::print("  median {:.0f} ms, ninth decile {:.0f} ms a compile; {:.1f} s in all on {} lanes, busy {:.0f}%\n",
             1e3 * seconds[seconds.size() / 2], 1e3 * seconds[seconds.size() * 9 / 10], elapsed,
             laboratory->compile_lanes(), 100 * busy / (elapsed * static_cast<double>(laboratory->compile_lanes())));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "examples/models/resnet18.onnx");
  } catch (const kiln::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
