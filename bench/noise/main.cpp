// How often tuning finds what is fastest, and the same again, on a device that replays measured noise:
// docs/tuning-results.md.
//
// Method: candidates are drawn from the rows of a table that holds all samples of each. The tuner's own session tunes
// them, twice with other noise; so do simple methods, which take as many samples of each. Deterministic for a seed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "kiln/base/error.h"
#include "tuning_study.h"

namespace {

using namespace kiln::bench;

struct Device {
  const char* name;
  Noise noise;
};

// A step of the clock in 77,000 runs of the table is seen 21 times, of up to 1.74; here they come ten times as often.
constexpr Device devices[] = {
    {"as measured", {}},
    {"drift of 3%", {.drift = 0.03}},
    {"drift, and steps of up to 1.74, one in 370 runs",
     {.steps_per_run = 1.0 / 370, .largest_step = 1.74, .drift = 0.03}},
    {"drift, steps, and one run in 50 up to 3 times as long",
     {.steps_per_run = 1.0 / 370, .largest_step = 1.74, .blips_per_run = 0.02, .largest_blip = 3, .drift = 0.03}},
    {"drift, steps, and 5% of jitter, as of kernels of microseconds",
     {.steps_per_run = 1.0 / 370, .largest_step = 1.74, .jitter = 0.05, .drift = 0.03}}};

void print(const std::string& name, const Verdict& verdict, const Verdict& full) {
  fmt::print("  {:<14} {:>8.1f}% {:>8.1f}% {:>8.1f}% {:>8.3f} {:>9.2f} {:>9.2f} {:>9.3f} {:>8.3f}\n", name,
             100 * verdict.near, 100 * verdict.same, 100 * verdict.tied, verdict.worst, verdict.samples, verdict.runs,
             verdict.seconds, verdict.seconds / full.seconds);
}

void study(const std::vector<SampledRow>& rows, const StudyOptions& options) {
  fmt::print("  {:<14} {:>9} {:>9} {:>9} {:>8} {:>9} {:>9} {:>9} {:>8}\n", "", "within 1%", "same", "a tie", "worst",
             "samples", "runs", "seconds", "of 32");
  constexpr int full_samples = 32;
  const Verdict full = judge(rows, options, simple_method(full_samples, Statistic::median));
  print("tuner", judge(rows, options, tuner_method(options.candidates)), full);
  for (const int samples : {1, 3, 5, 10, full_samples}) {
    print(fmt::format("{} mean", samples), judge(rows, options, simple_method(samples, Statistic::mean)), full);
    if (samples == 1) continue;
    print(fmt::format("{} least", samples), judge(rows, options, simple_method(samples, Statistic::least)), full);
    print(fmt::format("{} median", samples), judge(rows, options, simple_method(samples, Statistic::median)), full);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Judges the tuner's statistics by samples that were measured");
  std::string folder;
  StudyOptions options;
  app.add_option("folder", folder, "holds convolution_a100.csv")->required();
  app.add_option("--tunings", options.tunings, "each made twice")->capture_default_str();
  app.add_option("--candidates", options.candidates, "of each tuning")->capture_default_str();
  app.add_option("--seed", options.seed, "of what is drawn")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const std::vector<SampledRow> rows = read_sampled_rows(folder + "/convolution_a100.csv");
    fmt::print(
        "{} rows; {} tunings of {} candidates, seed {}. Samples and runs for each candidate, seconds of the card "
        "for each tuning.\n",
        rows.size(), options.tunings, options.candidates, options.seed);
    for (const Device& device : devices) {
      fmt::print("{}:\n", device.name);
      options.noise = device.noise;
      study(rows, options);
    }
  } catch (const kiln::Error& error) {
    fmt::print(stderr, "bench_noise: {}\n", error.what());
    return 1;
  }
}
