#include "operations/stages.h"

#include <fmt/format.h>

#include <vector>

#include "kiln/generator/operation.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

int64_t channels_of(const Request& request) {
  return result_of(request).spec.extents[channel_dimension_of(request)];
}

void check_operand(const Request& request, std::string_view operand, EpilogueStage stage, const Ints& expected) {
  const TensorSpec* spec = request.find(operand);
  if (spec == nullptr) return;
  if (!request.has(stage)) {
    refuse(request, fmt::format("there is an operand {} but no epilogue stage {}", operand, to_string(stage)),
           fmt::format("add epilogue={} or leave out {}", to_string(stage), operand));
  }
  require_extents(request, operand, *spec, expected, fmt::format("from the extents of {}", result_of(request).name));
}

}  // namespace

OperandDefinition bias_operand(std::string channels, std::string_view result, DTypes dtypes) {
  return {.name = "bias",
          .role = Role::input,
          .batched = false,
          .printing = Printing::when_set,
          .extents = std::move(channels),
          .left_out = fmt::format("dtype of {}, without gaps", result),
          .summary = "read with epilogue=bias",
          .dtypes = dtypes};
}

OperandDefinition residual_operand(std::string_view result, DTypes dtypes) {
  const std::string as_result = fmt::format("as {}", result);
  return {.name = "residual",
          .role = Role::input,
          .printing = Printing::when_set,
          .extents = as_result,
          .left_out = as_result,
          .summary = "read with epilogue=add",
          .dtypes = dtypes};
}

std::optional<TensorSpec> implied_stage_operand(const Request& request, std::string_view operand) {
  if (operand == "bias" && request.has(EpilogueStage::bias)) {
    const TensorSpec& result = result_of(request).spec;
    if (result.extents.size() <= channel_dimension_of(request)) return std::nullopt;  // validate() refuses the result
    return TensorSpec::packed(result.dtype, {channels_of(request)}, "n");
  }
  if (operand == "residual" && request.has(EpilogueStage::add)) return result_of(request).spec;
  return std::nullopt;
}

void check_stage_operands(const Request& request) {
  check_operand(request, "bias", EpilogueStage::bias, {channels_of(request)});
  check_operand(request, "residual", EpilogueStage::add, result_of(request).spec.extents);
}

double stage_operand_bytes(const Request& request) {
  double bytes = 0;
  for (std::string_view operand : {"bias", "residual"}) {
    if (const TensorSpec* spec = request.find(operand)) bytes += bytes_of(*spec);
  }
  return bytes;
}

std::optional<TensorSpec> optional_operand(const Request& request, std::string_view name) {
  const TensorSpec* spec = request.find(name);
  return spec == nullptr ? std::nullopt : std::optional(*spec);
}

void add_operand(Request& request, std::string_view name, const std::optional<TensorSpec>& spec) {
  if (spec && !spec->extents.empty()) request.operands.push_back({std::string(name), *spec});
}

}  // namespace kiln
