// bench_neighbours: how well a size that nobody tuned is served by what is known of other sizes of its layer.
//
// Method: the clock of an emulated device times, of each request of a file, the variants that a search gives; the
// fastest is the size's tuned best. Then each size is left out in turn: three rules choose for it by the times of the
// other sizes of its class (docs/tuning-method.md), and the clock times their choices. Shares are the tuned best's time
// by the choice's, so above 100% where a rule finds a variant that the search did not try. A choice that the clock
// cannot time is left out of its rule's means.
//
//   estimate    the best estimate: what serves without any record
//   nearest     the fastest variant of the nearest size that is legal for this one
//   neighbours  what a Context takes: estimates corrected by the times of up to five sizes
//
//   bench_neighbours REQUESTS TIMES [--candidates N]
//
// The device is that of KILN_DRIVER. The file TIMES has the times of earlier calls, and gets the new ones.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "clock.h"
#include "judge.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/generator/layer_class.h"
#include "kiln/runtime/records.h"
#include "kiln/runtime/settings.h"
#include "neighbours.h"
#include "place.h"

namespace kiln::bench {
namespace {

constexpr std::array rules{"estimate", "nearest", "neighbours"};

struct Size {
  KeyedRequest request;
  LayerClass layer;
  Candidates candidates;
};

Choice choice_called(const std::string& name) {
  const size_t space = name.find(' ');
  if (space == std::string::npos) return {name, {}};
  return {name.substr(0, space), Config::parse(name.substr(space + 1))};
}

/// The times of `sizes` as tuning would have stored them.
cache::Database database_of(const std::vector<Size>& sizes, const Place& place, TimesFile& times) {
  cache::Database database = cache::Database::in_memory();
  database.put_device(device_entry(place.device.info()));
  for (const Size& size : sizes) {
    std::vector<cache::Record> records;
    for (const auto& [name, seconds] : times.of(size.request.key())) {
      if (seconds == no_time) continue;
      const Choice choice = choice_called(name);
      cache::Record record;
      record.device = place.id();
      record.request = size.request.key();
      record.algorithm = choice.algorithm;
      record.algorithm_digest = place.catalogue.digest(choice.algorithm).value_or("changed");
      record.config = choice.config.print();
      record.outcome = cache::outcome::timed;
      record.kind = cache::TimeKind::modelled;
      record.seconds = seconds;
      records.push_back(std::move(record));
    }
    database.insert(records);
  }
  return database;
}

/// Geometric mean and least of shares.
struct Shares {
  double logs = 0, worst = no_time;
  size_t count = 0;

  void add(double share) {
    logs += std::log(share);
    worst = std::min(worst, share);
    ++count;
  }
  std::string text() const {
    return fmt::format("{:.1f}%, worst {:.1f}%", 100 * std::exp(logs / static_cast<double>(count)), 100 * worst);
  }
};

class Judge {
 public:
  Judge(const Place& place, const std::vector<Size>& sizes, VariantClock& clock, TimesFile& times)
      : place_(place), sizes_(sizes), clock_(clock), times_(times), winners_(device_entry(place.device.info())) {
    winners_.load(database_of(sizes, place, times));
  }

  void judge() {
    std::map<std::string, std::array<Shares, rules.size()>> classes;
    std::vector<std::string> order;
    std::array<Shares, rules.size()> all;
    fmt::print("{}\n{:>10}{:>10}{:>12}  request\n", place_.id(), rules[0], rules[1], rules[2]);
    for (const Size& size : sizes_) {
      double best = no_time;
      for (const auto& [name, seconds] : times_.of(size.request.key())) best = std::min(best, seconds);
      Variants variants = place_.catalogue.on(size.request, place_.target);
      const std::array<Choice, rules.size()> choices{
          size.candidates.best_guess()->choice, nearest(size, variants),
          neighbours_.ranked(variants, size.candidates).best_guess()->choice};
      if (!classes.contains(size.layer.text)) order.push_back(size.layer.text);
      for (size_t rule = 0; rule < rules.size(); ++rule) {
        const double seconds = clock_.time(*size.request, choices[rule], true, times_);
        const int width = rule == 2 ? 12 : 10;
        if (seconds == no_time) {
          fmt::print("{:>{}}", "no time", width);
          continue;
        }
        classes[size.layer.text][rule].add(best / seconds);
        all[rule].add(best / seconds);
        fmt::print("{:>{}}", fmt::format("{:.1f}%", 100 * best / seconds), width);
      }
      fmt::print("  {}\n", size.request.key());
      std::fflush(stdout);
    }
    for (const std::string& name : order) print(classes[name], name);
    print(all, fmt::format("{} sizes", sizes_.size()));
  }

 private:
  static void print(const std::array<Shares, rules.size()>& shares, const std::string& of) {
    fmt::print("{}\n", of);
    for (size_t rule = 0; rule < rules.size(); ++rule) fmt::print("  {:<11} {}\n", rules[rule], shares[rule].text());
  }

  Choice nearest(const Size& size, Variants& variants) {
    std::vector<std::pair<double, const Size*>> others;
    for (const Size& other : sizes_) {
      if (&other == &size || other.layer.text != size.layer.text) continue;
      others.emplace_back(distance_between(other.layer.sizes, size.layer.sizes), &other);
    }
    std::ranges::stable_sort(others, {}, &std::pair<double, const Size*>::first);
    for (const auto& [distance, other] : others) {
      std::vector<std::pair<double, std::string>> fastest;
      for (const auto& [name, seconds] : times_.of(other->request.key())) {
        if (seconds != no_time) fastest.emplace_back(seconds, name);
      }
      std::ranges::sort(fastest);
      for (const auto& [seconds, name] : fastest) {
        if (!variants.refusal(choice_called(name))) return choice_called(name);
      }
    }
    return size.candidates.best_guess()->choice;
  }

  const Place& place_;
  const std::vector<Size>& sizes_;
  VariantClock& clock_;
  TimesFile& times_;
  cache::Winners winners_;
  Neighbours neighbours_{winners_, place_.catalogue, place_.figures};
};

void run(const std::string& requests, const std::string& path, const tuner::SearchOptions& search) {
  std::ifstream file(requests);
  if (!file) throw Error(ErrorCode::io_error, requests + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Place place;
  TimesFile times(path, place.id());
  VariantClock clock(device::ContextHandle::acquire(place.device), place.nvrtc, place.catalogue, place.target,
                     kernel_store(std::nullopt, place.environment));
  std::vector<Size> sizes;
  for (const RequestLine& line : parse_requests(text)) {
    const KeyedRequest request = line.request;
    Candidates candidates = place.catalogue.candidates(request, place.target, place.figures);
    clock.time(line.request, candidates, search, ".*", times);
    sizes.push_back({request, layer_class_of(request.key()), std::move(candidates)});
  }
  Judge(place, sizes, clock, times).judge();
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  CLI::App app("How well sizes that nobody tuned are served by what is known of other sizes");
  std::string requests, times;
  kiln::tuner::SearchOptions search;
  app.add_option("requests", requests, "file of requests: several sizes of each layer")->required();
  app.add_option("times", times, "file of times: is read and gets the new ones")->required();
  app.add_option("--candidates", search.candidates, "how many variants of a request are timed")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    kiln::bench::run(requests, times, search);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_neighbours: {}\n", error.what());
    return 1;
  }
}
