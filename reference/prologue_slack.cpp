#include "kiln/reference/prologue_slack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "evaluator.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/reference.h"
#include "kiln/reference/tensor_memory.h"
#include "slack.h"

namespace kiln::reference {
namespace slack {
namespace {

using Memory = std::vector<std::byte>;

double output_scale(const Question& asked) {
  const Scale alpha = blend_of(asked.plain, asked.output).alpha;
  if (alpha != Scale::any) return alpha == Scale::one ? 1 : 0;
  const FurtherBlend* further = further_blend_of(asked.plain, asked.output);
  return std::fabs(further == nullptr ? asked.values.alpha : asked.number(std::string(further->name) + "_alpha"));
}

Question question(const Request& plain, const std::string& output, const Operands& operands,
                  std::span<const float> perturbations, const RunValues& values, std::any& common) {
  Question asked{plain, output, operands, perturbations, values, common, 1};
  const bool moves = std::ranges::any_of(perturbations, [](float perturbation) { return perturbation != 0; });
  asked.scale = moves ? output_scale(asked) : 0;
  return asked;
}

// Clears the sign of each element, and of the bytes between them: the sign is the highest bit of every floating-point
// type.
void clear_signs(DType dtype, Memory& memory) {
  const auto size = static_cast<size_t>(size_of(dtype));
  for (size_t i = size - 1; i < memory.size(); i += size) memory[i] &= std::byte{0x7f};
}

Memory bytes_of(std::span<const std::byte> memory) {
  return {memory.begin(), memory.end()};
}

SlackCall call_with(const Question& asked, bool magnitudes) {
  SlackCall call{.operands = {}, .values = asked.values};
  for (const auto& [name, spec] : asked.plain.operands) {
    if (!is_read(asked.plain, name)) continue;
    Memory& memory = call.operands[name];
    if (name == operation(asked.plain.operation).prologue_operand()) {
      memory = bytes_of(std::as_bytes(asked.perturbations));
    } else if (is_written(asked.plain, name)) {
      memory.resize(static_cast<size_t>(byte_span(spec)));  // what the result is added to does not move
    } else {
      memory = bytes_of(asked.operands.at(name));
      if (magnitudes && is_floating(spec.dtype)) clear_signs(spec.dtype, memory);
    }
  }
  if (const std::optional<size_t> padding = reference_of(asked.plain.operation).padding) {
    call.values.operation_scalars[*padding] = 0;
  }
  return call;
}

// Terms of one sign: their sum is as large as their magnitudes, so its error is relative to it. The error is that of
// the elements with the most terms, which are among the samples or have at most twice as many.
double error_of(const Request& plain, const SlackCall& call) {
  constexpr int64_t samples = 20;
  constexpr double unit = 0x1p-24;
  Bindings bindings{.operands = {}, .values = call.values};
  for (const auto& [name, memory] : call.operands) bindings.operands[name] = memory;
  const Oracle oracle(plain, bindings);
  double most = 0;
  for (const Coordinate& at : sample_coordinates(oracle.output(), samples, 1)) {
    const Expected expected = oracle.at(at);
    const double size = std::fabs(expected.value);
    const bool is_number = std::isfinite(size) && size != 0;
    most = std::max(most, static_cast<double>(expected.roundings) + (is_number ? expected.transcendental / size : 0));
  }
  return 2 * most * unit;
}

}  // namespace

SlackCall with_magnitudes(const Question& asked) {
  return call_with(asked, true);
}

std::optional<SlackCall> with_given_inputs(const Question& asked) {
  return call_with(asked, false);
}

double Question::number(std::string_view name) const {
  const std::vector<ScalarDefinition>& scalars = operation(plain.operation).scalars();
  const auto found =
      std::find_if(scalars.begin(), scalars.end(), [&](const ScalarDefinition& scalar) { return scalar.name == name; });
  return values.operation_scalars.at(static_cast<size_t>(found - scalars.begin()));
}

}  // namespace slack

std::optional<SlackCall> slack_call(const Request& plain, const slack::Operands& operands,
                                    std::span<const float> perturbations, const RunValues& values) {
  const std::string& result = result_of(plain).name;
  std::any common;
  const slack::Question asked = slack::question(plain, result, operands, perturbations, values, common);
  const Reference reference = reference_of(plain.operation);
  if (asked.scale == 0 || (reference.call == nullptr && reference.slack != nullptr)) return std::nullopt;
  std::optional<SlackCall> call = reference.call == nullptr ? slack::with_magnitudes(asked) : reference.call(asked);
  if (call) call->error = slack::error_of(plain, *call);
  return call;
}

std::map<std::string, std::vector<float>> prologue_slack(const Request& plain, std::span<const std::string> outputs,
                                                         const slack::Operands& operands,
                                                         std::span<const float> perturbations,
                                                         const RunValues& values) {
  const Reference reference = reference_of(plain.operation);
  std::map<std::string, std::vector<float>> slacks;
  std::any common;
  for (const std::string& output : outputs) {
    const slack::Question asked = slack::question(plain, output, operands, perturbations, values, common);
    if (asked.scale != 0 && reference.slack == nullptr) {
      throw Error(ErrorCode::internal,
                  fmt::format("how far a prologue moves {} of {} is said by slack_call() alone", output, plain.key()));
    }
    slacks[output] = asked.scale == 0 ? std::vector<float>(static_cast<size_t>(plain.at(output).elements()))
                                      : reference.slack(asked);
  }
  return slacks;
}

RunValues values_without_user_code(const Request& request, RunValues values) {
  if (const std::optional<size_t> padding = reference_of(request.operation).padding) {
    float& value = values.operation_scalars[*padding];
    const TensorSpec& around = request.at(operation(request.operation).prologue_operand());
    value = static_cast<float>(round_to(around.dtype, value));
  }
  return values;
}

}  // namespace kiln::reference
