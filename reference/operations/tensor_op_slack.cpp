// prologue_slack() of tensor_op. docs/numerics.md, "User code", derives the bounds.
#include <algorithm>
#include <cmath>
#include <optional>

#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tensor_op_value.h"
#include "operations/slack_rows.h"
#include "slack.h"

namespace kiln::reference::slack {
namespace {

// How far tensor_op's result moves where a moves by no more than `perturbation`. Every mode is monotonic in a between
// the ends of that, 0 (even powers, absolute values, quotients of powers) and b (comparisons), where it may turn, jump
// or lack a value: so the most is at one of these.
double tensor_op_slack(TensorOpMode mode, double a, double perturbation, double b, double c) {
  if (perturbation == 0) return 0;
  if (!std::isfinite(perturbation)) return infinity;
  const double value = tensor_op_value(mode, a, b, c);
  double most = 0;
  const auto look_at = [&](double at) {
    const double moved = tensor_op_value(mode, at, b, c);
    if (moved == value || (std::isnan(moved) && std::isnan(value))) return;
    const double distance = std::fabs(moved - value);
    most = std::isfinite(distance) ? std::max(most, distance) : infinity;
  };
  look_at(a - perturbation);
  look_at(a + perturbation);
  if (std::fabs(a) <= perturbation) look_at(0);
  if (inputs_of(mode) > 1 && std::fabs(b - a) <= perturbation) look_at(b);
  return most;
}

}  // namespace

std::vector<float> of_tensor_op(const Question& asked) {
  const TensorOp op = TensorOp::of(asked.plain);
  const Repeating a(op.a, asked.operands.at("a")), perturbation(op.a, std::as_bytes(asked.perturbations));
  const auto other = [&](const std::optional<TensorSpec>& spec, const char* name) {
    return spec ? std::optional<Repeating>(std::in_place, *spec, asked.operands.at(name)) : std::nullopt;
  };
  const std::optional<Repeating> b = other(op.b, "b"), c = other(op.c, "c");
  std::vector<float> slack(static_cast<size_t>(op.y.elements()));
  Rows(op.y, {}).for_each(
      [&](size_t element, size_t, double value, double moves, double second, double third) {
        slack[element] = static_cast<float>(asked.scale * tensor_op_slack(op.mode, value, moves, second, third));
      },
      a, perturbation, b, c);
  return slack;
}

}  // namespace kiln::reference::slack
