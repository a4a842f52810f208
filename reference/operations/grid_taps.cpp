#include "operations/grid_taps.h"

#include <array>
#include <cmath>

#include "operations/resize_taps.h"

namespace kiln::reference {
namespace {

// Operations of f32 are those of double, rounded: double has more than twice the bits, so that rounding twice does
// nothing else, and no compiler joins two of them.
float rounded(double value) {
  return static_cast<float>(value);
}

struct Moved {
  float position;
  double factor;  // of the slope: 0 where the position was moved to an end, -1 where it was mirrored
};

Moved to_ends(Moved given, int64_t extent) {
  const auto last = static_cast<float>(extent - 1);
  const float position = given.position;
  if (!(position > 0)) return {0, 0};  // NaN too
  if (position >= last) return {last, 0};
  return given;
}

Moved mirrored(const GridSampling& sampling, float position, int64_t extent) {
  const bool at_edges = sampling.ends == GridEnds::edges;
  const float low = at_edges ? -0.5f : 0.0f, span = static_cast<float>(at_edges ? extent : extent - 1);
  if (span == 0) return {0, 0};
  const float from_low = rounded(double{position} - low), distance = std::fabs(from_low);
  const float rest = std::fmod(distance, span), turns = std::floor(rounded(double{distance} / span));
  const double factor = from_low < 0 ? -1 : 1;
  if (std::fmod(turns, 2.0f) == 0) return {rounded(double{rest} + low), factor};
  return {rounded(rounded(double{span} - rest) + double{low}), -factor};
}

Moved padded(const GridSampling& sampling, float position, int64_t extent) {
  if (sampling.padding == GridPadding::zeros) return {position, 1};
  if (sampling.padding == GridPadding::border) return to_ends({position, 1}, extent);
  return to_ends(mirrored(sampling, position, extent), extent);
}

// Adds a tap at an element that may lie outside x.
void add(std::vector<GridTap>& taps, const GridSampling& sampling, double element, int64_t extent, GridTap tap) {
  if (sampling.mode == GridMode::cubic && sampling.padding != GridPadding::zeros) {
    element = padded(sampling, static_cast<float>(element), extent).position;
  }
  if (!(element >= 0 && element < static_cast<double>(extent))) return;
  tap.position = static_cast<int64_t>(element);
  taps.push_back(tap);
}

}  // namespace

float grid_position(const GridSampling& sampling, float coordinate, int64_t extent) {
  const float shifted = rounded(double{coordinate} + 1);
  if (sampling.ends == GridEnds::centres) {
    return rounded(double{rounded(double{shifted} / 2)} * static_cast<double>(extent - 1));
  }
  const float along = rounded(double{shifted} * static_cast<double>(extent));
  return rounded(double{rounded(double{along} - 1)} / 2);
}

std::vector<GridTap> grid_taps(const GridSampling& sampling, float coordinate, int64_t extent) {
  const float given = grid_position(sampling, coordinate, extent);
  const bool is_cubic = sampling.mode == GridMode::cubic;
  const Moved moved = is_cubic ? Moved{given, 1} : padded(sampling, given, extent);
  const float position = moved.position;
  std::vector<GridTap> taps;
  if (!std::isfinite(position) && sampling.padding == GridPadding::zeros) return taps;
  if (sampling.mode == GridMode::nearest) {
    add(taps, sampling, std::nearbyint(position), extent, {});
    return taps;
  }
  const double before = std::floor(position), t = position - before, u = 1 - t;
  const double of_coordinate =
      moved.factor * static_cast<double>(sampling.ends == GridEnds::edges ? extent : extent - 1) / 2;
  const auto tap = [&](double at, double weight, double error, double slope, double slope_error) {
    const double scaled = slope * of_coordinate;
    add(taps, sampling, before + at, extent,
        {.weight = weight,
         .error = error,
         .slope = scaled,
         .slope_error = slope_error * std::fabs(of_coordinate) + 2 * std::fabs(scaled)});
  };
  if (!is_cubic) {
    tap(0, u, t == 0 ? 0 : 1, -1, 0);
    tap(1, t, 0, 1, 0);
    return taps;
  }
  constexpr double a = -0.75;
  const auto inner_slope = [](double d) { return d * (3 * (a + 2) * d - 2 * (a + 3)); };
  const std::array slopes = {a * u * (u - 2 * t), inner_slope(t), -inner_slope(u), a * t * (2 * u - t)};
  // Slopes of the outer formulas are at most |a|, of the inner ones 1.5; what stands in between is below 8.
  constexpr double slope_error = 48;
  const std::vector<ResizeTap> weights = cubic_taps(t, a, 0);
  for (size_t i = 0; i < weights.size(); ++i) {
    const ResizeTap& weight = weights[i];
    tap(static_cast<double>(weight.position), weight.weight, weight.error, slopes[i], slope_error);
  }
  return taps;
}

}  // namespace kiln::reference
