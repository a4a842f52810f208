// prologue_slack() of activations and of their gradients. docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <cmath>

#include "kiln/generator/operations/activation.h"
#include "operations/activation.h"
#include "operations/slack_rows.h"
#include "slack.h"

namespace kiln::reference::slack {

// By no more than the function is steep.
std::vector<float> of_activation(const Question& asked) {
  const double steepest = asked.scale * steepest_slope(ActivationForward::of(asked.plain).mode, asked.number("slope"));
  std::vector<float> slack(asked.perturbations.size());
  std::transform(asked.perturbations.begin(), asked.perturbations.end(), slack.begin(), [&](float perturbation) {
    const bool is_known = std::isfinite(perturbation);
    return static_cast<float>(!is_known ? infinity : perturbation == 0 ? 0 : perturbation * steepest);
  });
  return slack;
}

// Linear in dy. No call of the operation: where the slope is NaN, what does not move stays.
std::vector<float> of_activation_backward(const Question& asked) {
  const ActivationBackward activation = ActivationBackward::of(asked.plain);
  const ActivationScalars scalars{asked.number("slope"), asked.number("offset"), asked.number("low"),
                                  asked.number("high")};
  const bool from_y = !activation.x;
  const Repeating known(from_y ? *activation.y : *activation.x, asked.operands.at(from_y ? "y" : "x"));
  std::vector<float> slack(asked.perturbations.size());
  Rows(activation.dy, {})
      .for_each(
          [&](size_t element, size_t, double at) {
            const double perturbation = asked.perturbations[element];
            if (perturbation == 0) return;
            const Approximated slope = from_y ? activation_derivative_from_y(activation.mode, at, scalars)
                                              : activation_derivative(activation.mode, at, scalars);
            const double moved = std::fabs(activation_gradient(activation.mode, slope, perturbation).value);
            slack[element] = static_cast<float>(std::isnan(moved) ? infinity : asked.scale * moved);
          },
          known);
  return slack;
}

}  // namespace kiln::reference::slack
