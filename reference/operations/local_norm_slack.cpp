// prologue_slack() of local normalisations and of their gradients. docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <optional>

#include "kiln/base/parallel.h"
#include "kiln/generator/operations/local_norm.h"
#include "operations/slack_rows.h"
#include "slack.h"

namespace kiln::reference::slack {
namespace {

using Values = std::vector<double>;  // of all elements, in logical order

Values values_of(const Question& asked, const std::string& name) {
  const TensorSpec& spec = asked.plain.at(name);
  Values values(static_cast<size_t>(spec.elements()));
  Rows(spec, {}).for_each([&](size_t element, size_t, double value) { values[element] = value; },
                          Repeating(spec, asked.operands.at(name)));
  return values;
}

// Powers take long.
template <class Work>
void for_each_element(size_t count, const Work& work) {
  for_each_part(count, 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) work(i);
  });
}

// The window, and the numbers of the call.
struct Windows {
  const std::vector<int64_t>& extents;
  const std::vector<int64_t>& axes;
  int64_t behind, ahead;
  double scale, exponent, k;

  template <class View>
  Windows(const View& norm, const Question& asked)
      : extents(norm.x.extents),
        axes(norm.axes),
        behind((norm.size - 1) / 2),
        ahead(norm.size / 2),
        scale(asked.number("lrn_alpha") /
              std::pow(static_cast<double>(norm.size), static_cast<double>(norm.axes.size()))),
        exponent(asked.number("lrn_beta")),
        k(asked.number("lrn_k")) {}

  // For each element the sum from `before` elements ahead of it to `after` behind it, along one axis after the other.
  Values sums(Values values, int64_t before, int64_t after) const {
    for (const int64_t axis : axes) {
      int64_t step = 1;
      for (size_t d = static_cast<size_t>(axis) + 1; d < extents.size(); ++d) step *= extents[d];
      const int64_t extent = extents[static_cast<size_t>(axis)];
      Values added(values.size());
      for_each_part(values.size() / static_cast<size_t>(step), 1, [&](size_t begin, size_t end) {
        for (auto run = static_cast<int64_t>(begin); run < static_cast<int64_t>(end); ++run) {
          const int64_t at = run % extent;
          for (int64_t j = std::max<int64_t>(at - before, 0); j <= std::min(at + after, extent - 1); ++j) {
            const double* const from = values.data() + (run + j - at) * step;
            double* const to = added.data() + run * step;
            for (int64_t i = 0; i < step; ++i) to[i] += from[i];
          }
        }
      });
      values = std::move(added);
    }
    return values;
  }

  double power(double squares, double exponent_of_s) const { return std::pow(k + scale * squares, -exponent_of_s); }
};

// |x - means|.
Values distances_of(const Question& asked, const Values& x) {
  Values distances = x;
  if (asked.plain.find("means") != nullptr) {
    const Values means = values_of(asked, "means");
    for (size_t i = 0; i < x.size(); ++i) distances[i] -= means[i];
  }
  for (double& distance : distances) distance = std::fabs(distance);
  return distances;
}

Values squares_of(Values values) {
  for (double& value : values) value *= value;
  return values;
}

}  // namespace

std::vector<float> of_local_norm_forward(const Question& asked) {
  const LocalNormForward norm = LocalNormForward::of(asked.plain);
  const Windows windows(norm, asked);
  const auto in_windows = [&](Values values) { return windows.sums(std::move(values), windows.behind, windows.ahead); };
  const Values x = values_of(asked, "x"), distances = distances_of(asked, x);
  const Values perturbations(asked.perturbations.begin(), asked.perturbations.end());
  Values weighted(x.size());
  for (size_t i = 0; i < x.size(); ++i) weighted[i] = times(perturbations[i], distances[i]);
  const Values squares = in_windows(squares_of(distances)), first_order = in_windows(weighted),
               of_perturbations = in_windows(squares_of(perturbations));
  std::vector<float> slack(x.size());
  for_each_element(x.size(), [&](size_t i) {
    const double farthest = squares[i] + 2 * first_order[i] + of_perturbations[i];
    const double power = windows.power(squares[i], windows.exponent);
    const double most = windows.power(std::max(0.0, squares[i] - 2 * first_order[i]), windows.exponent);
    const double of_power = std::max(most - power, power - windows.power(farthest, windows.exponent));
    const bool may_overflow = std::isfinite(farthest) &&
                              std::max(1.0, windows.scale) * farthest + windows.k > std::numeric_limits<float>::max();
    const bool is_known = std::isfinite(of_perturbations[i]) && !may_overflow;
    const double distance = times(of_power, std::fabs(x[i])) + times(perturbations[i], most);
    slack[i] = is_known ? as_slack(times(distance, asked.scale)) : static_cast<float>(infinity);
  });
  return slack;
}

std::vector<float> of_local_norm_backward(const Question& asked) {
  const LocalNormBackward norm = LocalNormBackward::of(asked.plain);
  const Windows windows(norm, asked);
  const Values x = values_of(asked, "x"), distances = distances_of(asked, x);
  const Values squares = windows.sums(squares_of(distances), windows.behind, windows.ahead);
  Values terms(x.size());
  for_each_element(x.size(), [&](size_t i) {
    terms[i] = times(asked.perturbations[i], std::fabs(x[i]) * windows.power(squares[i], windows.exponent + 1));
  });
  const Values sums = windows.sums(std::move(terms), windows.ahead, windows.behind);
  const double factor = 2 * std::fabs(windows.scale) * windows.exponent;
  std::vector<float> slack(x.size());
  for_each_element(x.size(), [&](size_t i) {
    double distance = times(sums[i], factor * distances[i]);
    if (asked.output == "dx") distance += times(asked.perturbations[i], windows.power(squares[i], windows.exponent));
    slack[i] = as_slack(times(distance, asked.scale));
  });
  return slack;
}

}  // namespace kiln::reference::slack
