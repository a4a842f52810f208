#include "kiln/reference/prologue_slack.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/pool_window.h"
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

// The magnitude of the result at each element, in logical order; at samples only, twice the largest of them everywhere.
// NaN becomes infinite.
std::vector<float> magnitudes_of_result(const Request& request, const Bindings& bindings, const Sampling& sampling) {
  const Oracle oracle(request, bindings);
  const auto magnitude = [](const Expected& expected) {
    const double value = std::fabs(expected.value);
    return static_cast<float>(std::isnan(value) ? infinity : value);
  };
  std::vector<float> result(static_cast<size_t>(oracle.output().elements()));
  if (sampling.full) {
    const std::vector<Expected> all = oracle.all();
    std::transform(all.begin(), all.end(), result.begin(), magnitude);
    return result;
  }
  float most = 0;
  for (const Coordinate& at : sample_coordinates(oracle.output(), sampling.samples, sampling.seed))
    most = std::max(most, magnitude(oracle.at(at)));
  std::fill(result.begin(), result.end(), 2 * most);
  return result;
}

}  // namespace

Memory magnitudes(const TensorSpec& spec, std::span<const std::byte> memory) {
  Memory result(memory.begin(), memory.end());
  for_each_coordinate(spec, [&](std::span<const int64_t> coordinate) {
    write(spec, result, coordinate, std::fabs(read(spec, result, coordinate)));
  });
  return result;
}

std::vector<float> of_perturbations(const Question& asked, const std::map<std::string, Memory>& others) {
  Request plain = asked.plain;
  plain.blend.beta = Scale::zero;
  Bindings bindings;
  bindings.values = asked.values;
  bindings.values.alpha = std::fabs(asked.values.alpha);
  if (plain.operation == "tensor_transform") bindings.values.operation_scalars = {};  // its padding does not move
  bindings.operands[std::string(operation(plain.operation).prologue_operand())] = std::as_bytes(asked.perturbations);
  for (const auto& [name, memory] : others) bindings.operands[name] = memory;
  return magnitudes_of_result(plain, bindings, asked.sampling);
}

std::vector<float> of_sums(const Question& asked) {
  const Request& plain = asked.plain;
  std::map<std::string, Memory> factors;
  for (const auto& [name, spec] : plain.operands) {
    if (name == operation(plain.operation).prologue_operand() || is_written(plain, name)) continue;
    const std::span<const std::byte> memory = asked.operands.at(name);
    const bool says_where = plain.operation == "pool_backward" || pooled_positions(plain, name);
    factors[name] = says_where ? Memory(memory.begin(), memory.end()) : magnitudes(spec, memory);
  }
  return of_perturbations(asked, factors);
}

double Question::number(std::string_view name) const {
  const std::vector<ScalarDefinition>& scalars = operation(plain.operation).scalars();
  const auto found =
      std::find_if(scalars.begin(), scalars.end(), [&](const ScalarDefinition& scalar) { return scalar.name == name; });
  return values.operation_scalars.at(static_cast<size_t>(found - scalars.begin()));
}

}  // namespace slack

std::vector<float> prologue_slack(const Request& plain, const std::string& output, const slack::Operands& operands,
                                  std::span<const float> perturbations, const RunValues& values,
                                  const Sampling& sampling) {
  slack::Question asked{plain, output, operands, perturbations, values, sampling, 1};
  asked.scale = slack::output_scale(asked);
  if (asked.scale == 0 || std::ranges::all_of(perturbations, [](float perturbation) { return perturbation == 0; })) {
    return std::vector<float>(static_cast<size_t>(plain.at(output).elements()));
  }
  return slack::answer_of(plain.operation)(asked);
}

}  // namespace kiln::reference
