// Statistics behind the claims of a comparison.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::bench {

/// The median of paired ratios and the interval that covers it with 95% confidence, whatever the distribution (order
/// statistics, as for tuning's medians).
struct PairedRatio {
  double median = 0, low = 0, high = 0;
  int64_t pairs = 0;

  /// "faster", "slower", or "even" where the interval holds 1.
  std::string verdict() const;
};

/// Ratio of theirs[i] / ours[i]: above 1 we are faster. Each pair was taken one right after the other, so what slows
/// the device for a while slows both. Equal lengths; zeros if there are none.
PairedRatio paired_ratio(std::span<const double> ours, std::span<const double> theirs);

struct Interval {
  double value = 0, low = 0, high = 0;
};

/// The geometric mean of one ratio a row, with the 95% interval of 10,000 seeded bootstrap resamples of the rows: what
/// the mean would be of other samples of layers. Zeros for no rows.
Interval geometric_mean(std::span<const double> ratios, uint64_t seed = 1);

/// When enough pairs were taken: the interval is narrow, or there are as many as may be.
struct StopRule {
  int64_t least = 9;
  int64_t most = 60;
  double precision = 0.01;  ///< Half-width of the interval, as a share of the median.

  bool satisfied(const PairedRatio& ratio) const;
};

}  // namespace kiln::bench
