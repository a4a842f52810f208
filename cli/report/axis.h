// A logarithmic axis of a chart.
#pragma once

#include <vector>

namespace kiln::cli {

/// With some room at both ends.
class LogAxis {
 public:
  /// Covers `low` to `high`; 0 < low <= high.
  LogAxis(double low, double high);

  double low() const { return low_; }
  double high() const { return high_; }
  /// Where a value stands, from 0 to 100; values beyond the axis stand at its ends.
  double percent(double value) const;
  /// Round values inside the axis, ascending: 2 to 8 of them.
  std::vector<double> ticks() const;

 private:
  double low_, high_;
};

}  // namespace kiln::cli
