// prologue_slack() of activations and of their gradients. docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <cmath>

#include "kiln/generator/operations/activation.h"
#include "slack.h"

namespace kiln::reference::slack {

// By no more than the function is steep.
std::vector<float> of_activation(const Question& asked) {
  const double steepest =
      asked.scale * steepest_slope(ActivationForward::of(asked.plain).mode, asked.values.operation_scalars[0]);
  std::vector<float> slack(asked.perturbations.size());
  std::transform(asked.perturbations.begin(), asked.perturbations.end(), slack.begin(), [&](float perturbation) {
    const bool is_known = std::isfinite(perturbation);
    return static_cast<float>(!is_known ? infinity : perturbation == 0 ? 0 : perturbation * steepest);
  });
  return slack;
}

// Linear in dy: the operation on the perturbations, element by element, of large layers too.
std::vector<float> of_activation_backward(const Question& asked) {
  const Sampling everywhere;
  const char* const known = asked.plain.find("x") != nullptr ? "x" : "y";
  const std::span<const std::byte> bytes = asked.operands.at(known);
  const Question in_full{asked.plain,  asked.output, asked.operands, asked.perturbations,
                         asked.values, everywhere,   asked.scale};
  std::vector<float> slack = of_perturbations(in_full, {{known, {bytes.begin(), bytes.end()}}});
  for (size_t i = 0; i < slack.size(); ++i)
    slack[i] = asked.perturbations[i] == 0 ? 0 : slack[i];  // also where the slope is NaN
  return slack;
}

}  // namespace kiln::reference::slack
