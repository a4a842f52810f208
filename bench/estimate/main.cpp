// bench_estimate: how well estimate() chooses, judged by the times that a tuning database holds.
//
// Method: of each request of the database, the oracle is the fastest variant that has a time. The columns say which
// part of its speed Kiln's default reaches (what is used where nothing was measured), and the best of those that `kiln
// tune` tries; how estimates rank all variants that have a time; and the estimate and the time of the default. A mark
// says that the default, or one of those that would be tried, has no time: then the next best that has one stands for
// it.
//
//   bench_estimate [--verbose] DATABASE
//
// The device is that of KILN_DRIVER; the database has to have times of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "judge.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/target.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/records.h"
#include "kiln/templates/catalogue.h"

namespace kiln::bench {
namespace {

cache::Database open_to_read(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    throw Error(ErrorCode::io_error, path + " is not a file", "`kiln tune` makes a tuning database");
  std::optional<cache::Announcement> trouble;
  cache::Database database = cache::Database::open(path, {.mode = cache::OpenMode::read_only},
                                                   [&](const cache::Announcement& met) { trouble = met; });
  if (trouble) throw Error(ErrorCode::io_error, trouble->cause, trouble->hint);
  return database;
}

std::string share_text(double share, bool is_exact) {
  return fmt::format("{:.1f}%{}", 100 * share, is_exact ? "" : "?");
}

void print_heads(const std::string& device) {
  fmt::print("{}\n{:>8} {:>8} {:>5} {:>10} {:>10} {:>10}  request\n", device, "default", "of 16", "ranks", "timed",
             "estimate", "time, us");
}

void print_row(const EstimateRow& row, size_t variants, const std::string& request, bool verbose) {
  fmt::print(
      "{:>8} {:>8} {:>5.2f} {:>10} {:>10.2f} {:>10.2f}  {}\n", share_text(row.standard_share(), row.standard_has_time),
      share_text(row.tried_share(), row.tried_have_times), row.spearman, fmt::format("{}/{}", row.timed, variants),
      row.standard.estimate.seconds * 1e6, row.standard_seconds * 1e6, request);
  if (!verbose) return;
  const auto print = [](const char* which, const Candidate& candidate, double seconds) {
    fmt::print("    {} {}, {:.2f} us, estimated {:.2f}\n", which, name_of(candidate.choice), seconds * 1e6,
               candidate.estimate.seconds * 1e6);
  };
  print("default", row.standard, row.standard_seconds);
  print("fastest", row.fastest, row.fastest_seconds);
}

int run(const std::string& path, bool verbose) {
  const cache::Database database = open_to_read(path);
  const Environment environment = Environment::read();
  const device::Device device(device::Driver::open({environment.driver.value_or("emulator")}), 0);
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const std::string id = device.info().id();
  const Target target = execution::target_for(device.info().cc_major, device.info().cc_minor, *nvrtc);
  DeviceFigures figures = execution::figures_of(device.info());
  if (const auto calibration = calibration_in(database, id)) figures.calibration = *calibration;
  const Catalogue catalogue = make_catalogue(embedded_sources());

  std::vector<EstimateRow> rows;
  for (const std::string& key : database.request_keys(id)) {
    const Candidates candidates = catalogue.candidates(Request::parse(key), target, figures);
    const EstimateRow row = judge_estimates(candidates, times_of(database.records(key, id)));
    if (row.timed == 0) continue;
    if (rows.empty()) print_heads(id);
    print_row(row, candidates.ranked.size(), key, verbose);
    rows.push_back(row);
  }
  if (rows.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no times of {}", path, id),
                "the device and its clock are those of KILN_DRIVER, KILN_EMULATOR_DEVICE and KILN_EMULATOR_CLOCK");
  }
  const EstimateVerdict verdict = judge_estimates(rows);
  fmt::print(
      "{} requests: default {:.1f}% of the fastest, worst {:.1f}%; best of 16 {:.1f}%; ranks {:.2f} on average; "
      "{} marked\n",
      rows.size(), 100 * verdict.standard_share, 100 * verdict.worst_standard_share, 100 * verdict.tried_share,
      verdict.spearman, verdict.marked);
  return 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  CLI::App app("How near the choices of estimate() come to the fastest variant that a tuning database knows");
  std::string path;
  bool verbose = false;
  app.add_option("database", path, "tuning database with times of many variants of each request")->required();
  app.add_flag("--verbose", verbose, "also the default and the fastest of each request");
  CLI11_PARSE(app, argc, argv);
  try {
    return kiln::bench::run(path, verbose);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_estimate: {}\n", error.what());
    return 1;
  }
}
