#include "report/axis.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kiln::cli {
namespace {

constexpr size_t most_ticks = 8;

// Every multiple in `steps` of a power of ten that lies inside.
std::vector<double> round_values(double low, double high, const std::vector<int>& steps) {
  std::vector<double> values;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
    for (const int step : steps) {
      if (step * power >= low && step * power <= high) values.push_back(step * power);
    }
  }
  return values;
}

// Multiples of a round step: what is left where an axis covers less than a factor of about 5.
std::vector<double> even_values(double low, double high) {
  const double least = (high - low) / 6;
  const double power = std::pow(10, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> values;
  for (double count = std::ceil(low / step); count * step <= high; ++count) values.push_back(count * step);
  return values;
}

}  // namespace

LogAxis::LogAxis(double low, double high) : low_(low / 1.15), high_(high * 1.15) {}

double LogAxis::percent(double value) const {
  if (value <= low_) return 0;
  return std::min(100.0, 100 * std::log(value / low_) / std::log(high_ / low_));
}

std::vector<double> LogAxis::ticks() const {
  // A label needs room on both sides: 6% of a phone's width.
  const double low = low_ * std::pow(high_ / low_, 0.06), high = low_ * std::pow(high_ / low_, 0.94);
  std::vector<double> ticks;
  for (const auto& steps : {std::vector<int>{1, 2, 5}, {1, 3}, {1}}) {
    ticks = round_values(low, high, steps);
    if (ticks.size() <= most_ticks) break;
  }
  while (ticks.size() > most_ticks) {  // many decades: every second of them
    for (size_t i = 1; i < ticks.size(); ++i) ticks.erase(ticks.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return ticks.size() < 3 ? even_values(low, high) : ticks;
}

}  // namespace kiln::cli
