#include "operations/short_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

using PerAxis = std::vector<int64_t>;

bool all_are(const PerAxis& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t each) { return each == value; });
}

std::string order_words(const TensorSpec& spec) {
  const auto order = spec.order();
  return order && order != dimension_letters(spec.rank()) ? " " + *order : std::string();
}

// Whether the operand called `name` would have its dtype if the request left it out.
bool has_implied_dtype(Request request, const std::string& name) {
  const DType dtype = request.at(name).dtype;
  std::erase_if(request.operands, [&](const Operand& operand) { return operand.name == name; });
  try {
    const Request completed = finished(std::move(request));
    const TensorSpec* const implied = completed.find(name);
    return implied != nullptr && implied->dtype == dtype;
  } catch (const Error&) {
    return false;  // it has to be given
  }
}

// " (w f8e4m3, y f32)": the operands with another dtype than `operand`. Not those that cannot have that one, or that
// would have theirs if they were left out.
std::string other_dtypes(const Request& request, std::string_view operand) {
  const Operation& definition = operation(request.operation);
  const DType usual = request.at(operand).dtype;
  std::vector<std::string> others;
  for (const OperandDefinition& other : definition.operands()) {
    const TensorSpec* const spec = request.find(other.name);
    if (spec == nullptr || spec->dtype == usual || !other.dtypes.holds(usual)) continue;
    if (has_implied_dtype(request, other.name)) continue;
    others.push_back(fmt::format("{} {}", other.name, to_string(spec->dtype)));
  }
  return others.empty() ? std::string() : fmt::format(" ({})", fmt::join(others, ", "));
}

}  // namespace

std::string extents_words(const TensorSpec& spec) {
  return fmt::format("{}", fmt::join(spec.extents, "x"));
}

std::string per_axis_words(const PerAxis& values) {
  if (all_are(values, values.front())) return fmt::format("{}", values.front());
  return fmt::format("{}", fmt::join(values, "x"));
}

std::string steps_words(const WindowSteps& steps) {
  std::string text;
  if (!all_are(steps.stride, 1)) text += fmt::format(", stride {}", per_axis_words(steps.stride));
  if (!all_are(steps.pad_begin, 0) || !all_are(steps.pad_end, 0)) {
    text += fmt::format(", pad {}", per_axis_words(steps.pad_begin));
    if (steps.pad_begin != steps.pad_end) text += fmt::format("-{}", per_axis_words(steps.pad_end));
  }
  return text;
}

std::string stages_words(const Request& request) {
  std::vector<std::string_view> stages;
  for (EpilogueStage stage : request.epilogue) stages.push_back(to_string(stage));
  return stages.empty() ? std::string() : fmt::format(", {}", fmt::join(stages, "+"));
}

std::string storage_words(const TensorSpec& spec) {
  return spec.dtype == DType::f32 ? order_words(spec) : storage_words_with_dtype(spec);
}

std::string storage_words_with_dtype(const TensorSpec& spec) {
  return fmt::format(" {}{}", to_string(spec.dtype), order_words(spec));
}

std::string call_words(const Request& request) {
  std::string text;
  if (request.dynamic_batch) text += " n=?";
  if (request.constant_weights) text += " constant weights";
  return text;
}

std::string operand_words(const Request& request, std::string_view operand) {
  return storage_words(request.at(operand)) + other_dtypes(request, operand) + call_words(request);
}

std::string result_words(const Request& request) {
  const Operand& result = result_of(request);
  return extents_words(result.spec) + operand_words(request, result.name);
}

}  // namespace kiln
