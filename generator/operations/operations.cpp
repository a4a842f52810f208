#include "operations/operations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
#include "operations/short_form.h"

namespace kiln {

const std::vector<const Operation*>& operations() {
#define KILN_DEFINITION(name) &name##_operation(),
  static const std::vector<const Operation*> all = {KILN_OPERATIONS(KILN_DEFINITION)};
#undef KILN_DEFINITION
  return all;
}

const Operation* find_operation(std::string_view name) {
  for (const Operation* candidate : operations()) {
    if (candidate->name() == name) return candidate;
  }
  return nullptr;
}

const std::vector<ScalarDefinition>& Operation::scalars() const {
  static const std::vector<ScalarDefinition> none;
  return none;
}

const std::vector<FurtherBlend>& Operation::further_blends() const {
  static const std::vector<FurtherBlend> none;
  return none;
}

std::vector<ScalarRule> Operation::scalar_rules(const Request&) const {
  return {};
}

const std::vector<IntegerDefinition>& Operation::integers() const {
  static const std::vector<IntegerDefinition> none;
  return none;
}

std::optional<std::string> Operation::why_images_mix(const Request& request) const {
  for (const OperandDefinition& operand : operands()) {
    if (operand.role != Role::output || operand.batched || request.find(operand.name) == nullptr) continue;
    return fmt::format("{} is a sum over the batch", operand.name);
  }
  return std::nullopt;
}

size_t Operation::batch_dimensions(const Request& request, std::string_view operand) const {
  return is_batched(request, operand) ? 1 : 0;
}

std::string Operation::short_form(const Request& request) const {
  std::string words(name());
  std::replace(words.begin(), words.end(), '_', ' ');
  return fmt::format("{} {}", words, result_words(request));
}

std::string hint_of_unknown(std::string_view operation) {
  std::vector<std::string_view> known;
  for (const Operation* candidate : operations()) known.push_back(candidate->name());
  return did_you_mean(operation, known, fmt::format("known are {}", fmt::join(known, ", ")));
}

std::string_view kind_given_at_call(const Operation& operation, std::string_view name) {
  const auto has = [&](const auto& definitions) {
    return std::ranges::any_of(definitions, [&](const auto& definition) { return definition.name == name; });
  };
  if (has(operation.integers())) return "integer";
  if (has(operation.scalars())) return "number";
  const bool is_bound = name == "clip_lo" || name == "clip_hi";
  return is_bound && std::ranges::count(operation.stages(), EpilogueStage::clip) > 0 ? "number" : "";
}

std::string hint_of_call(std::string_view kind, std::string_view name) {
  return fmt::format("give {1} at the call: by name among its {0}s in C++ and C, {1}=... in Python; commands choose it",
                     kind, name);
}

std::string hint_of_class(std::string_view name) {
  return fmt::format("write {}=any, and {}", name, hint_of_call("number", name));
}

const Operation& operation(std::string_view name) {
  if (const Operation* found = find_operation(name)) return *found;
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown operation '{}'", name), hint_of_unknown(name));
}

namespace {

// Null for the operands of user code.
const OperandDefinition* definition_of(const Request& request, std::string_view operand) {
  for (const OperandDefinition& definition : operation(request.operation).operands()) {
    if (definition.name == operand) return &definition;
  }
  return nullptr;
}

Role role_of(const Request& request, std::string_view operand) {
  const OperandDefinition* definition = definition_of(request, operand);
  return definition == nullptr ? Role::input : definition->role;
}

// Whether it is an output with no element for an image: a sum over them.
bool sums_images(const Request& request, std::string_view operand) {
  const OperandDefinition* definition = definition_of(request, operand);
  return definition != nullptr && definition->role == Role::output && !definition->batched;
}

}  // namespace

const Operand& result_of(const Request& request) {
  for (const Operand& operand : request.operands) {
    if (role_of(request, operand.name) == Role::output) return operand;
  }
  throw Error(ErrorCode::internal, fmt::format("{} has no output", request.operation));
}

size_t channel_dimension_of(const Request& request) {
  return operation(request.operation).channel_dimension(result_of(request).spec.rank());
}

std::optional<size_t> prologue_channel_dimension_of(const Request& request) {
  const Operation& definition = operation(request.operation);
  return definition.prologue_channel_dimension(request.at(definition.prologue_operand()).rank());
}

bool is_written(const Request& request, std::string_view operand) {
  return role_of(request, operand) != Role::input;
}

bool names_elements(const Request& request, std::string_view operand) {
  const OperandDefinition* definition = definition_of(request, operand);
  return definition != nullptr && definition->names_elements;
}

bool has_minus_infinity(const Request& request, std::string_view operand) {
  const OperandDefinition* definition = definition_of(request, operand);
  return definition != nullptr && definition->has_minus_infinity;
}

bool is_batched(const Request& request, std::string_view operand) {
  const OperandDefinition* definition = definition_of(request, operand);
  const TensorSpec& spec = request.at(operand);
  const bool of_channels = is_prologue_operand(operand) ? spec.rank() == 1 : is_per_channel(request, spec);
  const bool may_be = definition != nullptr ? definition->batched : !of_channels;
  return may_be && spec.extents.front() == request.batch();  // or it has an extent of 1
}

bool writes_nothing_without_batch(const Request& request) {
  return is_batched(request, result_of(request).name) &&
         std::none_of(request.operands.begin(), request.operands.end(),
                      [&](const Operand& operand) { return sums_images(request, operand.name); });
}

bool is_read(const Request& request, std::string_view operand) {
  return role_of(request, operand) != Role::output || blend_of(request, operand).beta != Scale::zero;
}

}  // namespace kiln
