#include "statistics.h"

#include <algorithm>
#include <cmath>

#include "kiln/reference/fill.h"
#include "kiln/tuner/timing.h"

namespace kiln::bench {

std::string PairedRatio::verdict() const {
  if (low > 1) return "faster";
  return high < 1 ? "slower" : "even";
}

PairedRatio paired_ratio(std::span<const double> ours, std::span<const double> theirs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) ratios.push_back(theirs[i] / ours[i]);
  const auto pairs = static_cast<int64_t>(ratios.size());
  const tuner::Summary summary = tuner::summarise(std::move(ratios));
  return {summary.median, summary.low, summary.high, pairs};
}

Interval geometric_mean(std::span<const double> ratios, uint64_t seed) {
  constexpr size_t resamples = 10000;
  if (ratios.empty()) return {};
  const auto mean_of = [&](const auto& index_of) {
    double sum = 0;
    for (size_t i = 0; i < ratios.size(); ++i) sum += std::log(ratios[index_of(i)]);
    return std::exp(sum / static_cast<double>(ratios.size()));
  };
  std::vector<double> means;
  for (size_t sample = 0; sample < resamples; ++sample) {
    means.push_back(
        mean_of([&](size_t i) { return reference::random_bits(seed, sample * ratios.size() + i) % ratios.size(); }));
  }
  std::sort(means.begin(), means.end());
  return {mean_of([](size_t i) { return i; }), means[resamples / 40], means[resamples - 1 - resamples / 40]};
}

bool StopRule::satisfied(const PairedRatio& ratio) const {
  if (ratio.pairs >= most) return true;
  return ratio.pairs >= least && (ratio.high - ratio.low) / 2 <= precision * ratio.median;
}

}  // namespace kiln::bench
