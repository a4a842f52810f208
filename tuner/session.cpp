#include "kiln/tuner/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "engine.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/generator/roofline.h"

namespace kiln::tuner {
namespace {

// Seconds that tuning may save over the whole model; negative if nothing can serve the request.
double expected_saving(const Job& job, const Catalogue& catalogue, const Apparatus& apparatus) {
  try {
    const Choice choice = catalogue.heuristic(job.request, apparatus.target, apparatus.figures);
    const Estimate estimate = catalogue.estimate(job.request, apparatus.target, apparatus.figures, choice);
    const double floor = roofline_seconds(job.request, apparatus.target, apparatus.figures);
    return static_cast<double>(job.count) * std::max(estimate.seconds - floor, 0.0);
  } catch (const Error&) {
    return -1;  // its turn comes last, and then it is reported why
  }
}

bool parse_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Session::Session(const Catalogue& catalogue, Laboratory& laboratory, SessionOptions options, SessionCallbacks callbacks)
    : catalogue_(catalogue), laboratory_(laboratory), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

std::vector<JobResult> Session::run(const std::vector<Job>& jobs) {
  Apparatus apparatus = laboratory_.apparatus();
  if (options_.calibration) apparatus.figures.calibration = *options_.calibration;
  Engine engine(catalogue_, laboratory_, apparatus, options_, callbacks_, quarantine_, stop_);
  return engine.run(jobs, tuning_order(jobs, catalogue_, apparatus));
}

std::vector<size_t> tuning_order(const std::vector<Job>& jobs, const Catalogue& catalogue, const Apparatus& apparatus) {
  struct Ranked {
    double saving;
    std::string key;
  };
  std::vector<Ranked> ranked;
  for (const Job& job : jobs) ranked.push_back({expected_saving(job, catalogue, apparatus), job.request.key()});
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return ranked[a].saving != ranked[b].saving ? ranked[a].saving > ranked[b].saving : ranked[a].key < ranked[b].key;
  });
  return order;
}

Shard Shard::parse(const std::string& text) {
  Shard shard;
  const size_t slash = text.find('/');
  const bool parsed = slash != std::string::npos &&
                      parse_number(std::string_view(text).substr(0, slash), shard.index) &&
                      parse_number(std::string_view(text).substr(slash + 1), shard.count);
  if (!parsed || shard.index >= shard.count) {
    throw Error(ErrorCode::parse_error, fmt::format("'{}' is not a shard", text),
                "write i/N with 0 <= i < N, e.g. 0/4 for the first of four");
  }
  return shard;
}

bool Shard::contains(const std::string& key) const {
  const std::string digest = digest_of(key);
  uint64_t hash = 0;
  std::from_chars(digest.data(), digest.data() + 16, hash, 16);
  return hash % count == index;
}

}  // namespace kiln::tuner
