// prologue_slack() of normalisations, with statistics of the call and with given ones, as scale and shift, and of their
// gradients.
// docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <optional>

#include "kiln/generator/operations/norm.h"
#include "operations/activation.h"
#include "operations/norm.h"
#include "operations/slack_rows.h"
#include "slack.h"

namespace kiln::reference::slack {
namespace {

std::optional<Repeating> repeating(const Question& asked, const std::string& name) {
  const TensorSpec* spec = asked.plain.find(name);
  return spec == nullptr ? std::nullopt : std::optional<Repeating>(std::in_place, *spec, asked.operands.at(name));
}

// ---- forward

struct NormRow {
  double sum = 0, magnitudes = 0, largest = 0;  // of x; the largest with its perturbation
  double perturbations = 0, squared_perturbations = 0;
  double mean = 0;
  // Slacks that follow from these: how far the kernels' values may be off, with their own errors.
  double mean_slack = 0, variance_slack = 0, inverse_slack = 0, most_inverse = 0;

  // The sums alone.
  NormRow& operator+=(const NormRow& other) {
    sum += other.sum;
    magnitudes += other.magnitudes;
    largest = std::max(largest, other.largest);
    perturbations += other.perturbations;
    squared_perturbations += other.squared_perturbations;
    return *this;
  }
};

// Sums over the distances from the mean.
struct Spread {
  double squares = 0, weighted = 0;  // the second: of their magnitudes times the perturbations

  Spread& operator+=(const Spread& other) {
    squares += other.squares;
    weighted += other.weighted;
    return *this;
  }
};

void finish(NormRow& row, const Spread& spread, bool centred, double length, double epsilon) {
  const double roundings = (length + 8) * unit, mean_error = centred ? roundings * row.largest : 0;
  const double variance = spread.squares / length, first_order = 2 * spread.weighted / length;
  const double most = variance + first_order + row.squared_perturbations / length;
  const double error = roundings * most + 2 * mean_error * std::sqrt(most) + mean_error * mean_error + 0x1p-126;
  const double inverse = 1 / std::sqrt(variance + epsilon);
  row.mean_slack = centred ? row.perturbations / length + mean_error : 0;
  row.variance_slack = most - variance + error;
  row.most_inverse = 1 / std::sqrt(std::max(0.0, variance - first_order - error) + epsilon);
  row.inverse_slack = std::max(row.most_inverse - inverse, inverse - 1 / std::sqrt(most + error + epsilon));
}

// `slack`, or what is known without it.
float known(const NormRow& row, double length, double slack) {
  if (row.perturbations == 0) return 0;
  if (!std::isfinite(row.perturbations)) return static_cast<float>(infinity);
  if (!std::isfinite(row.magnitudes)) return 0;  // the row is NaN
  const bool may_overflow = 4 * length * row.largest * row.largest > std::numeric_limits<float>::max();
  return may_overflow || std::isinf(row.most_inverse) ? static_cast<float>(infinity) : as_slack(slack);
}

// `Norm`: NormForward or NormAffine.
template <class Norm>
std::vector<NormRow> rows_of(const Norm& norm, const Question& asked, const Rows& rows, const Repeating& x) {
  const double length = std::max(rows.length(), 1.0);
  auto all = rows.sums<NormRow>(
      [&](NormRow& row, size_t element, size_t, double value) {
        const double perturbation = asked.perturbations[element];
        row.sum += value;
        row.magnitudes += std::fabs(value);
        row.largest = std::max(row.largest, std::fabs(value) + perturbation);
        row.perturbations += perturbation;
        row.squared_perturbations += perturbation * perturbation;
      },
      x);
  const bool centred = norm.mode == NormMode::standard;
  for (NormRow& row : all) row.mean = centred ? row.sum / length : 0;
  const auto spreads = rows.sums<Spread>(
      [&](Spread& spread, size_t element, size_t number, double value) {
        const double distance = std::fabs(value - all[number].mean);
        spread.squares += distance * distance;
        spread.weighted += times(asked.perturbations[element], distance);
      },
      x);
  for (size_t i = 0; i < all.size(); ++i) finish(all[i], spreads[i], centred, length, asked.number("epsilon"));
  return all;
}

// Slack of a statistic of a row.
double statistic_slack(const Question& asked, const NormRow& row, double length) {
  if (asked.output == "mean") return row.mean_slack;
  if (asked.output == "inv_deviation") return row.inverse_slack;
  const double momentum = std::fabs(asked.number("momentum"));
  if (asked.output == "running_mean") return momentum * row.mean_slack;
  return momentum * row.variance_slack * length / std::max(length - 1, 1.0);
}

}  // namespace

std::vector<float> of_norm_forward(const Question& asked) {
  const NormForward norm = NormForward::of(asked.plain);
  const Rows rows(norm.x, norm.axes);
  const Repeating x(norm.x, asked.operands.at("x"));
  const std::optional<Repeating> w = repeating(asked, "w");
  const auto& all = asked.shared<std::vector<NormRow>>([&] { return rows_of(norm, asked, rows, x); });
  std::vector<float> slack;
  if (asked.output != "y") {
    for (const NormRow& row : all) {
      slack.push_back(known(row, rows.length(), statistic_slack(asked, row, rows.length())));
    }
    return slack;
  }
  slack.resize(asked.perturbations.size());
  rows.for_each(
      [&](size_t element, size_t number, double value, double weight) {
        const NormRow& row = all[number];
        const double distance = std::fabs(value - row.mean);
        const double of_xhat =
            distance * row.inverse_slack + (asked.perturbations[element] + row.mean_slack) * row.most_inverse;
        slack[element] = known(row, rows.length(), asked.scale * times(of_xhat, std::fabs(weight)));
      },
      x, w);
  return slack;
}

// As many rows as x has, of as many elements as scale has.
std::vector<float> of_norm_affine(const Question& asked) {
  const NormAffine norm = NormAffine::of(asked.plain);
  const Rows rows(norm.x, norm.axes);
  const auto& all = asked.shared<std::vector<NormRow>>(
      [&] { return rows_of(norm, asked, rows, Repeating(norm.x, asked.operands.at("x"))); });
  std::vector<float> slack(static_cast<size_t>(norm.scale.elements()));
  Rows(norm.scale, norm.axes)
      .for_each(
          [&](size_t element, size_t number, double weight) {
            const NormRow& row = all[number];
            const double moved = asked.output == "scale"
                                     ? row.inverse_slack
                                     : std::fabs(row.mean) * row.inverse_slack + row.mean_slack * row.most_inverse;
            slack[element] = known(row, rows.length(), asked.scale * times(moved, std::fabs(weight)));
          },
          repeating(asked, "w"));
  return slack;
}

// ---- backward

namespace {

// The most that each element of dy may count for more or less: nothing where relu gave 0, and behind an activation
// |f'| d, with what |f'| may be off.
std::vector<float> passed_perturbations(const NormBackward& norm, const Question& asked) {
  std::vector<float> passed(asked.perturbations.begin(), asked.perturbations.end());
  const Rows elements(norm.dy, {});
  if (norm.activation == ActivationMode::identity) {
    const auto drop = [&](size_t element, size_t, double y) {
      if (!(y > 0)) passed[element] = 0;
    };
    if (norm.y) elements.for_each(drop, *repeating(asked, "y"));
    return passed;
  }
  const ActivationScalars numbers{asked.number("slope"), asked.number("offset"), asked.number("low"),
                                  asked.number("high")};
  const bool has_mean = norm.mean.has_value(), has_b = norm.b.has_value(), has_residual = norm.residual.has_value();
  elements.for_each(
      [&](size_t element, size_t, double x, double inverse, double mean, double w, double b, double residual) {
        if (passed[element] == 0) return;
        const reference::Normalised z =
            normalised(x, has_mean ? mean : 0, inverse, w, has_b ? b : 0, has_residual ? residual : 0);
        const Approximated slope = activation_derivative_around(norm.activation, z.value, z.error, numbers);
        const Approximated moved = activation_gradient(norm.activation, slope, passed[element]);
        const double most = std::fabs(moved.value) + (1 + 0x1p-10) * unit * moved.error;
        const bool is_known = !z.open && !moved.open && most <= float_max;
        passed[element] = static_cast<float>(is_known ? most : infinity);
      },
      *repeating(asked, "x"), *repeating(asked, "inv_deviation"), repeating(asked, "mean"), repeating(asked, "w"),
      repeating(asked, "b"), repeating(asked, "residual"));
  return passed;
}

// Parts of xhat. For rms there is no mean.
struct Xhat {
  Repeating x, inverse;
  std::optional<Repeating> mean;

  double magnitude(double value, double inverse_value, double mean_value) const {
    return std::fabs((value - (mean ? mean_value : 0)) * inverse_value);
  }
};

// Sums of |w| d, and of |w| d |xhat|.
struct Weighted {
  double all = 0, along = 0;

  Weighted& operator+=(const Weighted& other) {
    all += other.all;
    along += other.along;
    return *this;
  }
};

// Slack of dw or db: the sums over all that they repeat along.
std::vector<float> of_parameter(const Question& asked, const TensorSpec& dy, const Xhat& xhat,
                                const std::vector<float>& passed) {
  const TensorSpec& parameter = asked.plain.at(asked.output);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < parameter.extents.size(); ++d) {
    if (parameter.extents[d] == 1) axes.push_back(static_cast<int64_t>(d));
  }
  const Rows rows(dy, axes);
  const auto shift = [&](double& sum, size_t element, size_t) { sum += passed[element]; };
  const auto scale = [&](double& sum, size_t element, size_t, double x, double inverse, double mean) {
    sum += times(passed[element], xhat.magnitude(x, inverse, mean));
  };
  std::vector<float> slack;
  for (const double sum :
       asked.output == "db" ? rows.sums<double>(shift) : rows.sums<double>(scale, xhat.x, xhat.inverse, xhat.mean))
    slack.push_back(as_slack(times(sum, asked.scale)));
  return slack;
}

}  // namespace

std::vector<float> of_norm_backward(const Question& asked) {
  const NormBackward norm = NormBackward::of(asked.plain);
  const auto& passed = asked.shared<std::vector<float>>([&] { return passed_perturbations(norm, asked); });
  std::vector<float> slack;
  if (asked.output == "dresidual") {
    for (const float perturbation : passed) slack.push_back(as_slack(times(perturbation, asked.scale)));
    return slack;
  }
  const Xhat xhat{*repeating(asked, "x"), *repeating(asked, "inv_deviation"), repeating(asked, "mean")};
  if (asked.output != "dx") return of_parameter(asked, norm.dy, xhat, passed);

  const Rows rows(norm.dy, norm.axes);
  const std::optional<Repeating> w = repeating(asked, "w");
  const bool centred = norm.mode == NormMode::standard;
  const auto sums = rows.sums<Weighted>(
      [&](Weighted& sum, size_t element, size_t, double x, double inverse, double mean, double weight) {
        const double perturbation = times(passed[element], std::fabs(weight));
        sum.all += centred ? perturbation : 0;
        sum.along += times(perturbation, xhat.magnitude(x, inverse, mean));
      },
      xhat.x, xhat.inverse, xhat.mean, w);
  slack.resize(passed.size());
  rows.for_each(
      [&](size_t element, size_t row, double x, double inverse, double mean, double weight) {
        const double along = times(sums[row].along / rows.length(), xhat.magnitude(x, inverse, mean));
        const double perturbation = times(passed[element], std::fabs(weight)) + sums[row].all / rows.length() + along;
        slack[element] = as_slack(times(times(perturbation, std::fabs(inverse)), asked.scale));
      },
      xhat.x, xhat.inverse, xhat.mean, w);
  return slack;
}

// ---- inference

// With the magnitudes of the scale, around a mean of 0 and without a shift.
std::optional<SlackCall> of_norm_inference(const Question& asked) {
  SlackCall call = with_magnitudes(asked);
  for (const char* const left_out : {"running_mean", "b"}) {
    const auto found = call.operands.find(left_out);
    if (found != call.operands.end()) std::ranges::fill(found->second, std::byte{0});
  }
  return call;
}

}  // namespace kiln::reference::slack
