#include "evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "operations/activation.h"

namespace kiln::reference {
namespace {

/// Infinities (and overflowed magnitudes) end here: the bound is known exactly, no term matters any more.
void become_exact(Expected& result, double value) {
  const bool unspecified = result.unspecified;
  result = {.value = value, .magnitude = std::fabs(value), .quantum = quantum_of(value), .unspecified = unspecified};
}

/// min(max(v, low), high) with NaN kept. Both steps move two numbers no further apart, so errors do not grow.
void clamp(Expected& result, double low, double high) {
  // An infinity would become finite here, and NaN would not.
  result.unspecified = result.unspecified || result.any_not_finite;
  if (std::isnan(result.value)) {
    return;
  }
  const double clamped = std::min(std::max(result.value, low), high);
  if (std::isinf(result.value) && std::isfinite(clamped)) {
    // Where f32 overflows to the other infinity, NaN comes here instead.
    result.unspecified = result.unspecified || result.finite_magnitude > largest_sum;
    become_exact(result, clamped);
    return;
  }
  result.value = clamped;
  result.magnitude = std::max(result.magnitude, std::fabs(clamped));
  if (std::isfinite(low)) {
    result.quantum = std::min(result.quantum, quantum_of(low));
  }
  if (std::isfinite(high)) {
    result.quantum = std::min(result.quantum, quantum_of(high));
  }
}

void scale(Expected& result, double factor) {
  result.value *= factor;
  scale_magnitudes(result, factor);
  result.transcendental *= std::fabs(factor);
  result.quantum = std::clamp(result.quantum + quantum_of(factor), Expected::no_quantum, Expected::quantum_of_zero);
  result.roundings += 1;
}

}  // namespace

Tensor::Tensor(const TensorSpec& spec, const std::byte* data) : spec_(spec), data_(data) {
  constexpr int64_t small = int64_t{1} << 20;  // elements
  const int64_t span = spec.span();
  if (span > small) {
    return;
  }
  decoded_.reserve(static_cast<size_t>(span));
  for (int64_t i = 0; i < span; ++i) {
    decoded_.push_back(load(spec.dtype, data + i * size_of(spec.dtype)));
  }
}

double Tensor::operator[](std::span<const int64_t> coordinate) const {
  const int64_t offset = offset_of(spec_, coordinate);
  return decoded_.empty() ? load(spec_.dtype, data_ + offset * size_of(spec_.dtype))
                          : decoded_[static_cast<size_t>(offset)];
}

int quantum_of(double value) {
  if (value == 0) {
    return Expected::quantum_of_zero;
  }
  if (!std::isfinite(value)) {
    return Expected::no_quantum;
  }
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto fraction = bits & ((uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
  // A double is significand * 2^(exponent - 1075), with an implicit leading bit unless it is subnormal.
  const uint64_t significand = exponent == 0 ? fraction : fraction | (uint64_t{1} << 52);
  return std::max(exponent, 1) - 1075 + std::countr_zero(significand);
}

void add_term(Expected& sum, double term) {
  sum.value += term;
  sum.magnitude += std::fabs(term);
  if (std::isfinite(term)) {
    sum.finite_magnitude += std::fabs(term);
  }
  sum.quantum = std::min(sum.quantum, quantum_of(term));
  sum.roundings += 1;
}

void scale_magnitudes(Expected& sum, double factor) {
  for (double* magnitude : {&sum.magnitude, &sum.finite_magnitude}) {
    const bool overflows = *magnitude > largest_sum;
    *magnitude = overflows ? std::numeric_limits<double>::infinity() : *magnitude * std::fabs(factor);
  }
}

bool sums_are_exact(const Expected& sum, int digits) {
  constexpr int least_f32_quantum = -149;
  return sum.quantum >= least_f32_quantum && sum.magnitude <= std::ldexp(1.0, digits + std::min(sum.quantum, 1000));
}

Oracle::Evaluator::Evaluator(Request request, const Bindings& bindings, std::string_view output)
    : request_(std::move(request)), bindings_(bindings), output_name_(output) {
  is_result_ = result_of(request_).name == output_name_;
  blend_ = blend_of(request_, output_name_);
  if (blend_.alpha == Scale::any) alpha_ = is_result_ ? bindings_.values.alpha : further_scale("alpha");
  if (blend_.beta == Scale::any) beta_ = is_result_ ? bindings_.values.beta : further_scale("beta");
  if (blend_.beta != Scale::zero) {
    before_ = tensor(output_name_);
  }
  if (request_.has(EpilogueStage::bias)) {
    bias_ = tensor("bias");
  }
  if (request_.has(EpilogueStage::add)) {
    residual_ = tensor("residual");
  }
}

std::optional<Tensor> Oracle::Evaluator::optional_tensor(const std::string& operand) const {
  return request_.find(operand) == nullptr ? std::nullopt : std::optional(tensor(operand));
}

Tensor Oracle::Evaluator::tensor(const std::string& operand) const {
  const TensorSpec& spec = request_.at(operand);
  const auto memory = bindings_.operands.find(operand);
  if (memory == bindings_.operands.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no memory is bound to operand '{}' of {}", operand, request_.key()),
                "bind every operand that the call reads");
  }
  const auto bytes = static_cast<int64_t>(memory->second.size());
  if (bytes < byte_span(spec)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("operand '{}' of {} needs {} bytes, but {} are bound to it",
                                                         operand, request_.key(), byte_span(spec), bytes));
  }
  return Tensor(spec, memory->second.data());
}

double Oracle::Evaluator::scalar(std::string_view name) const {
  const std::vector<ScalarDefinition>& definitions = operation(request_.operation).scalars();
  for (size_t i = 0; i < definitions.size(); ++i) {
    if (definitions[i].name == name) {
      return bindings_.values.operation_scalars[i];
    }
  }
  throw Error(ErrorCode::internal, fmt::format("{} has no scalar {}", request_.operation, name));
}

uint64_t Oracle::Evaluator::integer(std::string_view name) const {
  const std::vector<IntegerDefinition>& definitions = operation(request_.operation).integers();
  for (size_t i = 0; i < definitions.size(); ++i) {
    if (definitions[i].name == name) {
      return bindings_.values.operation_integers[i];
    }
  }
  throw Error(ErrorCode::internal, fmt::format("{} has no integer {}", request_.operation, name));
}

double Oracle::Evaluator::further_scale(std::string_view which) const {
  return scalar(fmt::format("{}_{}", further_blend_of(request_, output_name_)->name, which));
}

Expected Oracle::Evaluator::stored(Expected result) const {
  result.storage = output().dtype;
  return result;
}

Expected Oracle::Evaluator::at(std::span<const int64_t> coordinate) const {
  return finished(operation_at(coordinate), coordinate);
}

Expected Oracle::Evaluator::finished(Expected result, std::span<const int64_t> coordinate) const {
  if (is_result_) return finish(result, coordinate);
  blend(result, coordinate);
  return stored(result);
}

std::vector<Expected> Oracle::Evaluator::all() const {
  std::vector<Expected> results;
  results.reserve(static_cast<size_t>(output().elements()));
  for_each_coordinate(output(), [&](std::span<const int64_t> coordinate) { results.push_back(at(coordinate)); });
  return results;
}

Expected Oracle::Evaluator::finish(Expected result, std::span<const int64_t> coordinate) const {
  blend(result, coordinate);
  for (const EpilogueStage stage : request_.epilogue) {
    apply(stage, result, coordinate);
  }
  // In an operation without an epilogue, a gradient, dy goes back through the activation.
  const ActivationMode mode = fused_activation_of(request_);
  if (mode != ActivationMode::identity && !operation(request_.operation).stages().empty()) {
    const ActivationScalars scalars{scalar("slope"), scalar("offset"), scalar("low"), scalar("high")};
    result = activated(mode, result, arithmetic_error(request_, result), scalars);
  }
  return stored(result);
}

void Oracle::Evaluator::blend(Expected& result, std::span<const int64_t> coordinate) const {
  if (blend_.alpha == Scale::zero) {
    result = Expected{};  // The result is then not even computed: NaN and infinity vanish too.
  } else if (blend_.alpha == Scale::any) {
    scale(result, alpha_);
  }
  if (before_) {
    const double beta = blend_.beta == Scale::one ? 1.0 : beta_;
    add_term(result, beta * (*before_)[coordinate]);
    result.roundings += 1;  // of the product
  }
}

void Oracle::Evaluator::apply(EpilogueStage stage, Expected& result, std::span<const int64_t> coordinate) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (stage) {
    case EpilogueStage::bias:
      return add_term(result, (*bias_)[coordinate.subspan(channel_dimension_of(request_), 1)]);
    case EpilogueStage::add:
      return add_term(result, (*residual_)[coordinate]);
    case EpilogueStage::relu:
      return clamp(result, 0, infinity);
    case EpilogueStage::clip:
      return clamp(result, bindings_.values.clip_lo, bindings_.values.clip_hi);
  }
}

}  // namespace kiln::reference
