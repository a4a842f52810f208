// bench_estimate: how well estimate() chooses, judged by the times that a tuning database holds.
//
// Method: of each request of the database, the oracle is the fastest variant that has a time. The columns say which
// part of its speed Kiln's default reaches (what is used where nothing was measured), and the best of those that `kiln
// tune` tries; how estimates rank all variants that have a time; and the estimate and the time of the default. A mark
// says that the default, or one of those that would be tried, has no time: then the next best that has one stands for
// it.
//
//   bench_estimate [--verbose|--all] DATABASE
//   bench_estimate [--verbose|--all] --measured [--calibrated] TABLE
//   bench_estimate [--verbose|--all] --time REQUESTS [--search KIND] [--candidates N] [--algorithms REGEX] TIMES
//
// The device is that of KILN_DRIVER; the database has to have times of it. With --time, the clock of an emulated device
// tells the times of the variants that a search gives, which are compiled but neither run nor checked; the file TIMES
// has those of earlier calls, and gets the new ones. With --measured, the times are those of a GPU, in a table of
// bench/measured/, and the device, an emulated one of the same card, tells its figures only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "clock.h"
#include "judge.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/records.h"
#include "kiln/runtime/settings.h"
#include "measured.h"
#include "place.h"

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

struct Options {
  std::string path, requests, algorithms = ".*";
  tuner::SearchOptions search;
  bool verbose = false, all = false, measured = false, calibrated = false, unchanged = false;
};

void print_variant(const char* which, const Candidate& candidate, double seconds) {
  fmt::print("    {} {}, {:.2f} us, estimated {:.2f}\n", which, name_of(candidate.choice), seconds * 1e6,
             candidate.estimate.seconds * 1e6);
}

void print_row(const EstimateRow& row, const Candidates& candidates, const Times& times, const std::string& request,
               const Options& options) {
  fmt::print("{:>8} {:>8} {:>5.2f} {:>10} {:>10.2f} {:>10.2f}  {}\n",
             share_text(row.standard_share(), row.standard_has_time),
             share_text(row.tried_share(), row.tried_have_times), row.spearman,
             fmt::format("{}/{}", row.timed, candidates.ranked.size()), row.standard.estimate.seconds * 1e6,
             row.standard_seconds * 1e6, request);
  if (options.verbose) {
    print_variant("default", row.standard, row.standard_seconds);
    print_variant("fastest", row.fastest, row.fastest_seconds);
  }
  if (!options.all) return;
  for (const Candidate& candidate : candidates.ranked) {
    const auto found = times.find(name_of(candidate.choice));
    if (found != times.end() && found->second != no_time) print_variant("timed", candidate, found->second);
  }
}

// Prints what is judged of one request after the other, and at the end of all.
class Report {
 public:
  Report(const Place& place, const Options& options) : place_(place), options_(options) {}

  void add(const std::string& request, const Candidates& candidates, const Times& times) {
    const EstimateRow row = judge_estimates(candidates, times);
    if (row.timed == 0) return;
    if (rows_.empty()) print_heads(place_.id());
    print_row(row, candidates, times, request, options_);
    std::fflush(stdout);
    rows_.push_back(row);
  }

  int end() const {
    if (rows_.empty()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} has no times of {}", options_.path, place_.id()),
                  "the device and its clock are those of KILN_DRIVER, KILN_EMULATOR_DEVICE and KILN_EMULATOR_CLOCK");
    }
    const EstimateVerdict verdict = judge_estimates(rows_);
    fmt::print(
        "{} requests: default {:.1f}% of the fastest, worst {:.1f}%; best of 16 {:.1f}%; ranks {:.2f} on average; "
        "{} marked\n",
        rows_.size(), 100 * verdict.standard_share, 100 * verdict.worst_standard_share, 100 * verdict.tried_share,
        verdict.spearman, verdict.marked);
    return 0;
  }

 private:
  const Place& place_;
  const Options& options_;
  std::vector<EstimateRow> rows_;
};

int judge_database(const Options& options) {
  const cache::Database database = open_to_read(options.path);
  Place place;
  if (const auto calibration = calibration_in(database, place.id())) place.figures.calibration = *calibration;
  Report report(place, options);
  for (const std::string& key : database.request_keys(place.id())) {
    const Candidates candidates = place.catalogue.candidates(Request::parse(key), place.target, place.figures);
    report.add(key, candidates, times_of(database.records(key, place.id())));
  }
  return report.end();
}

int judge_measured(const Options& options) {
  MeasuredTable table = read_measured(options.path);
  Place place;
  fmt::print("{}\n", leave_out_changed(table, place.catalogue, place.target, options.unchanged));
  if (options.calibrated && table.calibration) place.figures.calibration = *table.calibration;
  Report report(place, options);
  for (const MeasuredLayer& layer : table.layers) {
    const Candidates candidates =
        place.catalogue.candidates(Request::parse(layer.request), place.target, place.figures);
    report.add(layer.request, candidates, layer.times());
  }
  return report.end();
}

int judge_clock(const Options& options) {
  std::ifstream file(options.requests);
  if (!file) throw Error(ErrorCode::io_error, options.requests + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Place place;
  TimesFile times(options.path, place.id());
  VariantClock clock(device::ContextHandle::acquire(place.device), place.nvrtc, place.catalogue, place.target,
                     kernel_store(std::nullopt, place.environment));
  Report report(place, options);
  for (const RequestLine& line : parse_requests(text)) {
    const Candidates candidates = place.catalogue.candidates(line.request, place.target, place.figures);
    clock.time(line.request, candidates, options.search, options.algorithms, times);
    report.add(line.request.key(), candidates, times.of(line.request.key()));
  }
  return report.end();
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  CLI::App app("How near the choices of estimate() come to the fastest variant whose time is known");
  kiln::bench::Options options;
  std::string search{kiln::tuner::to_string(options.search.kind)};
  app.add_option("times", options.path, "tuning database with times of many variants; with --time, file of times")
      ->required();
  CLI::Option* measured =
      app.add_flag("--measured", options.measured, "the file is a table of times that a GPU measured: bench/measured/");
  app.add_flag("--unchanged", options.unchanged, "leave out variants whose source has changed since")->needs(measured);
  app.add_flag("--calibrated", options.calibrated, "estimate with the calibration of the table")->needs(measured);
  app.add_flag("--verbose", options.verbose, "also the default and the fastest of each request");
  app.add_flag("--all", options.all, "also every variant that has a time, best estimate first");
  CLI::Option* time =
      app.add_option("--time", options.requests, "file of requests whose variants are timed")->excludes(measured);
  app.add_option("--search", search, "which are: model, random, exhaustive or local")
      ->capture_default_str()
      ->needs(time);
  app.add_option("--candidates", options.search.candidates, "how many of a request")
      ->capture_default_str()
      ->needs(time);
  app.add_option("--algorithms", options.algorithms, "only of algorithms whose name matches this")
      ->capture_default_str()
      ->needs(time);
  CLI11_PARSE(app, argc, argv);
  try {
    options.search.kind = kiln::tuner::parse_search_kind(search);
    if (options.measured) return kiln::bench::judge_measured(options);
    return time->empty() ? kiln::bench::judge_database(options) : kiln::bench::judge_clock(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_estimate: {}\n", error.what());
    return 1;
  }
}
