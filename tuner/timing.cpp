#include "kiln/tuner/timing.h"

#include <algorithm>
#include <cmath>

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

size_t Race::enter() {
  entrants_.emplace_back();
  return entrants_.size() - 1;
}

bool Race::is_newcomer(const Entrant& entrant) const {
  const int wanted = deterministic_ ? 1 : options_.screening_samples;
  return entrant.state == State::running && static_cast<int>(entrant.samples.size()) < wanted;
}

std::optional<size_t> Race::next_newcomer() const {
  for (size_t i = 0; i < entrants_.size(); ++i) {
    if (is_newcomer(entrants_[i])) return i;
  }
  return std::nullopt;
}

bool Race::is_settled(const Entrant& entrant) const {
  if (entrant.state != State::running) return true;
  const auto taken = static_cast<int>(entrant.samples.size());
  if (deterministic_) return taken >= 1;
  if (taken < options_.min_samples) return false;
  if (taken >= options_.max_samples) return true;
  const Summary summary = summarise(entrant.samples);
  return summary.half_width() <= options_.precision * summary.median;
}

std::optional<size_t> Race::next() const {
  if (const std::optional<size_t> newcomer = next_newcomer()) return newcomer;
  // A round is over when all survivors have equally many samples: the one with the fewest is next. As long as one is
  // not settled all go on, because only samples of the same rounds compare fairly.
  std::optional<size_t> fewest;
  bool settled = true;
  for (size_t i = 0; i < entrants_.size(); ++i) {
    const Entrant& entrant = entrants_[i];
    if (entrant.state != State::running) continue;
    settled = settled && is_settled(entrant);
    if (static_cast<int>(entrant.samples.size()) >= options_.max_samples) continue;
    if (!fewest || entrant.samples.size() < entrants_[*fewest].samples.size()) fewest = i;
  }
  return settled ? std::nullopt : fewest;
}

void Race::add(size_t candidate, double seconds) {
  entrants_[candidate].samples.push_back(seconds);
  if (!deterministic_) reject_the_clearly_slower();
}

void Race::withdraw(size_t candidate) {
  entrants_[candidate].state = State::withdrawn;
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
  const std::optional<size_t> first = leader();
  if (!first || is_newcomer(entrants_[*first])) return;
  const double limit = summarise(entrants_[*first].samples).median * (1 + options_.reject_margin);
  for (size_t i = 0; i < entrants_.size(); ++i) {
    Entrant& entrant = entrants_[i];
    if (i == *first || entrant.state != State::running || is_newcomer(entrant)) continue;
    // Its fastest sample, because noise only ever adds time; later, when the median is known, its lower end will do.
    const bool known = static_cast<int>(entrant.samples.size()) >= options_.min_samples;
    const double least =
        known ? summarise(entrant.samples).low : *std::min_element(entrant.samples.begin(), entrant.samples.end());
    if (least > limit) entrant.state = State::rejected;
  }
}

}  // namespace kiln::tuner
