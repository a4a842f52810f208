#include "kiln/tuner/timing.h"

#include <algorithm>
#include <cmath>

#include "kiln/base/tie.h"

namespace kiln::tuner {

Summary summarise(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  Summary summary;
  summary.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  const double reach = 0.98 * std::sqrt(static_cast<double>(n));
  const double low = std::floor(static_cast<double>(n) / 2 - reach);
  const double high = std::ceil(static_cast<double>(n) / 2 + reach);
  summary.low = samples[static_cast<size_t>(std::max(low, 0.0))];
  summary.high = samples[static_cast<size_t>(std::min(high, static_cast<double>(n - 1)))];
  return summary;
}

namespace {

// Between the quartiles, as a share of the median: about what two samples of noise differ by.
double quartile_distance(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return (samples[3 * n / 4] - samples[n / 4]) / samples[n / 2];
}

}  // namespace

size_t Race::enter() {
  entrants_.emplace_back();
  return entrants_.size() - 1;
}

int Race::taken_in_lap(size_t candidate) const {
  return static_cast<int>(
      std::count_if(lap_.begin(), lap_.end(), [&](const Sample& sample) { return sample.candidate == candidate; }));
}

bool Race::is_settled(const Entrant& entrant) const {
  const auto taken = static_cast<int>(entrant.samples.size());
  if (deterministic_) return taken >= 1;
  if (taken < options_.min_samples) return false;
  if (taken >= options_.max_samples) return true;
  const Summary summary = summarise(entrant.samples);
  if (summary.half_width() > options_.precision * summary.median) return false;
  const double limit = tie_limit(summarise(entrants_[leader().value()].samples).median);
  const bool may_tie_or_not = summary.low <= limit && limit < summary.high;
  return !may_tie_or_not || taken >= options_.doubt_samples;
}

// The leader, once there is one that is screened.
std::optional<size_t> Race::pacer() const {
  const std::optional<size_t> first = leader();
  if (!first || static_cast<int>(entrants_[*first].samples.size()) < wanted_of_newcomers()) return std::nullopt;
  return first;
}

std::optional<Race::Turn> Race::newcomer() const {
  if (is_lap_full()) return std::nullopt;
  for (size_t i = 0; i < entrants_.size(); ++i) {
    if (entrants_[i].state != State::running) continue;
    const int lacking = wanted_of_newcomers() - static_cast<int>(entrants_[i].samples.size()) - taken_in_lap(i);
    if (lacking > 0) return Turn{i, lacking};
  }
  return std::nullopt;
}

// Picks the entrant with the fewest samples among those that are not settled and had no turn in this lap.
std::optional<Race::Turn> Race::survivor() const {
  if (is_lap_full()) return std::nullopt;
  const std::optional<size_t> first = pacer();
  std::optional<size_t> fewest;
  for (size_t i = 0; i < entrants_.size(); ++i) {
    const Entrant& entrant = entrants_[i];
    if (entrant.state != State::running || i == first || is_settled(entrant) || taken_in_lap(i) > 0) continue;
    if (!fewest || entrant.samples.size() < entrants_[*fewest].samples.size()) fewest = i;
  }
  if (!fewest) return std::nullopt;
  return Turn{*fewest, options_.turn_samples};
}

std::optional<Race::Turn> Race::next_of_screening() const {
  if (const std::optional<Turn> turn = newcomer()) return turn;
  return lap_.empty() ? std::nullopt : std::optional(Turn{pacer().value(), 1});
}

std::optional<Race::Turn> Race::next() const {
  if (const std::optional<Turn> turn = newcomer()) return turn;
  if (const std::optional<Turn> turn = survivor()) return turn;
  const std::optional<size_t> first = pacer();
  if (!first || (lap_.empty() && is_settled(entrants_[*first]))) return std::nullopt;
  return Turn{*first, 1};
}

void Race::add(size_t candidate, double seconds) {
  const std::optional<size_t> first = pacer();
  if (deterministic_ || !first) {
    entrants_[candidate].samples.push_back(seconds / pace_);
  } else if (candidate == *first) {
    end_lap(candidate, seconds);
  } else {
    lap_.push_back({candidate, seconds});
  }
}

void Race::end_lap(size_t pacer, double seconds) {
  std::vector<double>& own = entrants_[pacer].samples;
  const double pace = seconds / summarise(own).median;
  const double usual = std::max(options_.steady, 2 * quartile_distance(own));
  const bool steady = std::max(pace, pace_) <= std::min(pace, pace_) * (1 + usual);
  if (steady || lap_.empty() || laps_lost_ + 1 >= options_.most_laps) {
    own.push_back(seconds / pace_);
    count_lap(std::sqrt(pace * pace_));
    laps_lost_ = 0;
  } else {
    lap_.clear();
    ++laps_lost_;
  }
  pace_ = pace;
}

void Race::count_lap(double pace) {
  for (const Sample& sample : lap_) entrants_[sample.candidate].samples.push_back(sample.seconds / pace);
  lap_.clear();
  reject_the_clearly_slower();
}

void Race::withdraw(size_t candidate) {
  entrants_[candidate].state = State::withdrawn;
  std::erase_if(lap_, [&](const Sample& sample) { return sample.candidate == candidate; });
  if (!pacer()) close();  // nobody is left to set the pace
}

void Race::close() {
  count_lap(pace_);
}

std::optional<size_t> Race::leader() const {
  std::optional<size_t> best;
  double best_median = 0;
  for (size_t i = 0; i < entrants_.size(); ++i) {
    const Entrant& entrant = entrants_[i];
    if (entrant.state != State::running || entrant.samples.empty()) continue;
    const double median = summarise(entrant.samples).median;
    if (!best || median < best_median) {
      best = i;
      best_median = median;
    }
  }
  return best;
}

void Race::reject_the_clearly_slower() {
  const std::optional<size_t> first = pacer();
  if (!first) return;
  const double limit = summarise(entrants_[*first].samples).median * (1 + options_.reject_margin);
  for (size_t i = 0; i < entrants_.size(); ++i) {
    Entrant& entrant = entrants_[i];
    const auto taken = static_cast<int>(entrant.samples.size());
    if (i == *first || entrant.state != State::running || taken < wanted_of_newcomers()) continue;
    // Its fastest sample, because noise only ever adds time; later, when the median is known, its lower end will do.
    const double least = taken < options_.min_samples
                             ? *std::min_element(entrant.samples.begin(), entrant.samples.end())
                             : summarise(entrant.samples).low;
    if (least > limit) entrant.state = State::rejected;
  }
}

}  // namespace kiln::tuner
