#include "kiln/tuner/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "engine.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/generator/roofline.h"

namespace kiln::tuner {
namespace {

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
  return engine.run(jobs);
}

double worth_of(const Prospect& prospect) {
  const double to_gain = std::max(prospect.seconds - prospect.roofline_seconds, 0.0);
  const double chance = 1.0 / (static_cast<double>(prospect.trials) + 1);
  return static_cast<double>(prospect.count) * to_gain * chance / prospect.cost;
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
